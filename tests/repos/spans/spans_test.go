package spans

import (
	"os"
	"reflect"
	"testing"
)

func TestNew(t *testing.T) {
	if got := New(5, 2); got.First != 2 || got.Last != 5 {
		t.Fatalf("got %v", got)
	}
}

func TestLen(t *testing.T) {
	if got := New(2, 5).Len(); got != 4 {
		t.Errorf("got %d", got)
	}
}

func TestContains(t *testing.T) {
	span := New(2, 5)
	for n, want := range map[int]bool{1: false, 2: true, 5: true, 6: false} {
		if span.Contains(n) != want {
			t.Errorf("Contains(%d) is not %v", n, want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	if !New(1, 3).Overlaps(New(3, 4)) || New(1, 2).Overlaps(New(3, 4)) {
		t.Error("wrong")
	}
}

var parsed = []struct {
	input string
	want  Span
}{
	{"7", Span{7, 7}},
	{" 3 - 5 ", Span{3, 5}},
	{"5-3", Span{3, 5}},
}

func TestParse(t *testing.T) {
	for _, each := range parsed {
		t.Run(each.input, func(t *testing.T) {
			got, err := Parse(each.input)
			if err != nil {
				t.Fatal(err)
			}
			if got != each.want {
				t.Errorf("got %v, want %v", got, each.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	if _, err := Parse("  "); err != ErrEmpty {
		t.Errorf("got %v", err)
	}
	for _, input := range []string{"x", "1-x", "-"} {
		if _, err := Parse(input); err == nil {
			t.Errorf("no error for %q", input)
		}
	}
}

func TestString(t *testing.T) {
	if got := New(3, 3).String() + " " + New(3, 4).String(); got != "3 3-4" {
		t.Errorf("got %q", got)
	}
}

func sameSpans(got, want []Span) bool {
	return reflect.DeepEqual(got, want)
}

func TestJoin(t *testing.T) {
	got := Join([]Span{{5, 6}, {1, 2}, {3, 3}, {9, 9}, {1, 1}})
	if !sameSpans(got, []Span{{1, 3}, {5, 6}, {9, 9}}) {
		t.Errorf("got %v", got)
	}
}

func TestCount(t *testing.T) {
	if got := Count([]Span{{1, 3}, {2, 4}, {8, 8}}); got != 5 {
		t.Errorf("got %d", got)
	}
}

func TestGaps(t *testing.T) {
	if got := Gaps([]Span{{8, 9}, {1, 3}}); !sameSpans(got, []Span{{4, 7}}) {
		t.Errorf("got %v", got)
	}
}

func TestSkipped(t *testing.T) {
	if os.Getenv("SPANS_SLOW") == "" {
		t.Skip("slow")
	}
}
