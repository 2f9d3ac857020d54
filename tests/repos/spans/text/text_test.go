package text

import "testing"

func TestSqueeze(t *testing.T) {
	if got := Squeeze("  a \t b\n"); got != "a b" {
		t.Errorf("got %q", got)
	}
}

func TestInitials(t *testing.T) {
	for input, want := range map[string]string{"grace brewster hopper": "GBH", "": "", "x": "X"} {
		if got := Initials(input); got != want {
			t.Errorf("Initials(%q) = %q, want %q", input, got, want)
		}
	}
}
