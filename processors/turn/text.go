package turn

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/turn/internal/limits"
)

// Fixed bounds. Normal use does not reach them; they stop a faulty or malicious producer from filling the row.
const (
	maxID         = limits.MaxID         // bytes of an id, a name, a role, a timestamp
	maxCalls      = 1000                 // tool calls of one think-response
	maxHeld       = 2000                 // records held for the open step, and for steps to come; their bytes are bounded by the row
	maxRoutes     = 256                  // open routes of a session; a new one evicts the oldest
	maxUsedRoutes = 256                  // used routes whose tombstones are awaited
	maxDescriptor = limits.MaxDescriptor // bytes of a reply descriptor
	maxSteps      = 64                   // closed think steps that are remembered, to recognise late responses
	maxReason     = 512                  // bytes of foreign text in an error message
)

// The roles of messages.
const (
	roleUser    = "user" // also of a message without a role
	roleTool    = "tool"
	roleReplies = "assistant"
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

// spellings returns how often a record for the model has the input and the user.
func spellings(both bool) int {
	if both {
		return 2
	}
	return 1
}
