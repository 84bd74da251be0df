package updater

import (
	"context"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/topics"
)

// Scripted returns an updater without a model, for examples and tests. fact returns what is worth remembering of a message of
// the user, as one line, or "". Each fact that the memory does not have yet becomes its last line. If the memory would be longer
// than the limit, its first lines are left out. Scripted returns the same memory for equal arguments, if fact does.
func Scripted(fact func(message string) string) Updater {
	return Func(func(_ context.Context, e Ended) (Memory, error) {
		lines := strings.FieldsFunc(e.Memory, func(r rune) bool { return r == '\n' })
		for _, m := range e.Messages {
			if m.Role == nil || *m.Role != "user" {
				continue
			}
			line := strings.Join(strings.Fields(fact(topics.Text(m.Content))), " ")
			if line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		text := strings.Join(lines, "\n")
		for len(text) > e.Limit {
			_, text, _ = strings.Cut(text, "\n")
		}
		return Memory{Text: text}, nil
	})
}
