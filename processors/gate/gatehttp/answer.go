package gatehttp

import (
	"net/http"
	"time"

	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

type (
	answer  = entrance.Answer
	request = entrance.Request
)

// notFound is the answer about a gate that does not exist, and about one that the caller may not use.
func notFound() answer { return entrance.Failed(http.StatusNotFound, "Unknown gate") }

func notReady() answer { return entrance.NotReady("The gates are not known yet") }

// gateAnswer is the answer to a decision: the decision's ID and the gate, with its outcome if it has one. An empty text means
// no error.
func gateAnswer(status int, text, decision string, v *gate.View) answer {
	members := []any{"decision_id", decision, "gate", viewJSON(v)}
	if text != "" {
		members = append([]any{"error", text}, members...)
	}
	return answer{Status: status, Body: entrance.Object(members...)}
}

func isoOf(ms int64) string { return topics.Timestamp(time.UnixMilli(ms)) }
