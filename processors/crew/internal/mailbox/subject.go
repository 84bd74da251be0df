package mailbox

import "strings"

// The kinds of subjects. A subject is the kind and the ID of a row, such as "agent/a1".
const (
	OfAgent      = "agent/"
	OfCrew       = "crew/"
	OfRepository = "repository/"
	OfHost       = "host/"
)

// Agent, Crew and Repository are subjects.
func Agent(id string) string      { return OfAgent + id }
func Crew(id string) string       { return OfCrew + id }
func Repository(id string) string { return OfRepository + id }

// ID is the ID in a subject: the key of the row.
func ID(subject string) string {
	_, id, _ := strings.Cut(subject, "/")
	return id
}
