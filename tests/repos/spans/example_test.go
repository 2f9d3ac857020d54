package spans_test

import (
	"fmt"

	"example.com/spans"
)

func ExampleSpan_Overlaps() {
	fmt.Println(spans.New(1, 4).Overlaps(spans.New(4, 9)))
	// Output: true
}

func ExampleParse() {
	span, _ := spans.Parse("12 - 4")
	fmt.Println(span, span.Len())
	// Output: 4-12 9
}
