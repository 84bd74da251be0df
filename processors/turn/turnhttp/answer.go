package turnhttp

import "github.com/turntable-streams/turntable/processors/internal/entrance"

type answer = entrance.Answer

// accepted reports whether the request succeeded.
func accepted(a answer) bool { return a.Status < 300 }
