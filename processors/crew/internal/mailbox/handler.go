package mailbox

import (
	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/topics"
)

// Handlers apply inputs, by the kinds of the inputs. A is the application of one input to a row. A handler returns false for a body
// that cannot be decoded.
type Handlers[A any] map[string]func(a A, in topics.CrewInput) bool

// On adds the handler of the inputs whose body is a T.
func On[A any, T crewbody.Body](h Handlers[A], do func(A, T)) {
	var none T
	h[none.Kind()] = func(a A, in topics.CrewInput) bool {
		body, err := crewbody.Decode[T](in.Body)
		if err == nil {
			do(a, body)
		}
		return err == nil
	}
}

// Handle applies an input. It dead-letters one of an unknown kind, and one whose body cannot be decoded, with the given reasons.
func (h Handlers[A]) Handle(s *Step, a A, in topics.CrewInput, unknown, broken string) {
	handle := h[in.Kind]
	switch {
	case handle == nil:
		s.DeadLetter(unknown)
	case !handle(a, in):
		s.DeadLetter(broken)
	}
}
