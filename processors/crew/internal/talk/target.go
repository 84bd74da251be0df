package talk

import (
	"errors"
	"strings"

	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
)

var (
	errSelf   = errors.New("that is you")
	errEnded  = errors.New("the agent has ended")
	errPerson = errors.New("the user reads your text: write a line that has only @user, and your message below it")
)

// target returns the agent that another one means. Unlike the roster it also knows agents that are starting, by the beginning
// of their IDs: a lead knows the ID before the agent's session is ready.
func target(r *roster.Roster, from *roster.Member, name string) (*roster.Member, error) {
	switch strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@")) {
	case user, human:
		return nil, errPerson
	}
	m, err := r.Resolve(name, from.Id)
	if errors.Is(err, roster.ErrUnknown) {
		if starting := startingWith(r, name); starting != nil {
			m, err = starting, nil
		}
	}
	switch {
	case err != nil:
		return nil, err
	case m.Id == from.Id:
		return nil, errSelf
	case !reachable(m):
		return nil, errEnded
	}
	return m, nil
}

// shortest is the shortest beginning of an ID that names an agent.
const shortest = 4

// startingWith returns the only agent of the crew that has not ended and whose ID begins so, nil if there is none.
func startingWith(r *roster.Roster, name string) (found *roster.Member) {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if len(name) < shortest {
		return nil
	}
	for _, m := range r.GetMembers() {
		if !reachable(m) || !strings.HasPrefix(m.Id, name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}
