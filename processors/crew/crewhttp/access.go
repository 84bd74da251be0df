package crewhttp

import (
	"crypto/rand"

	"github.com/turntable-streams/turntable/processors/auth"
)

// mayUse reports whether a caller may use a crew. What belongs to no crew, such as the event of a repository without agents, is
// for callers that may use every crew: it tries one that does not exist.
func mayUse(c auth.Caller, crew string) bool {
	if crew == "" {
		crew = rand.Text()
	}
	return c.Allowed(crew)
}

// governs reports whether a caller may control all crews.
func governs(c auth.Caller) bool { return c.Can(auth.Control) && mayUse(c, "") }
