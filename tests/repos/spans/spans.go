// Package spans works with ranges of integers.
package spans

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"example.com/spans/text"
)

// ErrEmpty says that there is nothing to parse.
var ErrEmpty = errors.New("spans: empty")

// Span is the range of the integers from First to Last, both included.
type Span struct {
	First, Last int
}

// New returns the span between two integers, whichever of them is smaller.
func New(a, b int) Span {
	if a > b {
		a, b = b, a
	}
	return Span{First: a, Last: b}
}

// Len returns the number of integers in the span.
func (s Span) Len() int {
	return s.Last - s.First + 1
}

// Contains tells whether n is in the span.
func (s Span) Contains(n int) bool {
	return s.First <= n && n <= s.Last
}

// Overlaps tells whether two spans have an integer in common.
func (s Span) Overlaps(other Span) bool {
	return s.First <= other.Last && other.First <= s.Last
}

// String writes the span as "first-last", or as one number if it has only one.
func (s Span) String() string {
	if s.First == s.Last {
		return strconv.Itoa(s.First)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// Parse reads a span: "7" or "3-5". Blanks around the numbers are ignored.
// It returns ErrEmpty for a text without content, and another error for anything that is no span.
func Parse(input string) (Span, error) {
	plain := text.Squeeze(input)
	if plain == "" {
		return Span{}, ErrEmpty
	}
	parts := strings.SplitN(plain, "-", 2)
	first, err := strconv.Atoi(strings.TrimSpace(parts[0]))
	if err != nil {
		return Span{}, fmt.Errorf("spans: %q is no number", parts[0])
	}
	last := first
	if len(parts) == 2 {
		if last, err = strconv.Atoi(strings.TrimSpace(parts[1])); err != nil {
			return Span{}, fmt.Errorf("spans: %q is no number", parts[1])
		}
	}
	return New(first, last), nil
}

// Join merges spans that overlap or touch each other; the result is sorted by first number.
func Join(spans []Span) []Span {
	sorted := append([]Span(nil), spans...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].First < sorted[j].First })
	var joined []Span
	for _, next := range sorted {
		if n := len(joined); n > 0 && next.First <= joined[n-1].Last+1 {
			if next.Last > joined[n-1].Last {
				joined[n-1].Last = next.Last
			}
			continue
		}
		joined = append(joined, next)
	}
	return joined
}

// Count returns how many different integers are in the spans together.
func Count(spans []Span) int {
	total := 0
	for _, span := range Join(spans) {
		total += span.Len()
	}
	return total
}

// Gaps returns the spans between spans that follow each other without touching.
func Gaps(spans []Span) []Span {
	var gaps []Span
	joined := Join(spans)
	for i := 1; i < len(joined); i++ {
		gaps = append(gaps, Span{First: joined[i-1].Last + 1, Last: joined[i].First - 1})
	}
	return gaps
}
