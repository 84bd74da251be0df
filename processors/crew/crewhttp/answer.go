package crewhttp

import (
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

type (
	answer  = entrance.Answer
	request = entrance.Request
)

func write(w http.ResponseWriter, a answer) { a.Write(w, "Cache-Control", "no-store") }

// accepted is the answer to a request whose record is written: what it asks for follows as events.
func accepted(members ...any) answer {
	return answer{Status: http.StatusAccepted, Body: entrance.Object(append([]any{"status", "accepted"}, members...)...)}
}

func notReady() answer { return entrance.NotReady("The crews are not known yet") }

func badBody(err error) answer { return entrance.Failed(http.StatusBadRequest, err.Error()) }

func tooMany(text string, wait time.Duration) answer {
	return answer{Status: http.StatusTooManyRequests, Body: entrance.Object("error", text), RetryAfter: max(wait, time.Second)}
}
