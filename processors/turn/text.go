package turn

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
)

// blank reports whether a text is nil, empty or white space.
func blank(text *string) bool { return text == nil || strings.TrimSpace(*text) == "" }

// notBlank returns the text, or nil if it is blank.
func notBlank(text *string) *string {
	if blank(text) {
		return nil
	}
	return text
}

// first returns the first ID that is not blank, nil if all are.
func first(ids ...*string) *string {
	for _, id := range ids {
		if id = notBlank(id); id != nil {
			return id
		}
	}
	return nil
}

// clipped truncates foreign text to maxReason bytes.
func clipped(text string) string { return truncate.Marked(text, maxReason) }

// boundedID returns an id from a foreign record, or nil if it is longer than maxID.
func boundedID(id *string) *string {
	if id != nil && len(*id) > maxID {
		return nil
	}
	return id
}

func sameRequest(a, b *string) bool { return a != nil && b != nil && *a == *b }

// appendText appends a text as JSON; nil is null.
func appendText(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	b, _ = jsontext.AppendQuote(b, *text) // invalid UTF-8 is replaced
	return b
}
