// Package text has helpers for texts.
package text

import "strings"

// Squeeze folds runs of white space into one blank each, and removes them at both ends.
func Squeeze(input string) string {
	return strings.Join(strings.Fields(input), " ")
}

// Initials returns the first letter of each word, in capitals.
func Initials(input string) string {
	var letters []string
	for _, word := range strings.Fields(input) {
		letters = append(letters, strings.ToUpper(word[:1]))
	}
	return strings.Join(letters, "")
}
