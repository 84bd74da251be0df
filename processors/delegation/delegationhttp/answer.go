package delegationhttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/topics"
)

// Delegation is a delegation in the answers of the door. Times are ISO 8601.
type Delegation struct {
	CallbackID string                  `json:"callback_id"`
	SessionID  string                  `json:"session_id"`
	Agent      string                  `json:"agent"`
	Target     string                  `json:"target"`
	Status     topics.DelegationStatus `json:"status"`
	// Result is the text of a completed task, absent in lists and with another status.
	Result *string `json:"result,omitzero"`
	// Error says what went wrong with another one, and Code is its error code. Error is absent in lists.
	Error string `json:"error,omitzero"`
	Code  string `json:"code,omitzero"`
	Depth int64  `json:"depth"`
	// Channel is where the result is announced; empty if it is not.
	Channel    string `json:"channel,omitzero"`
	StartedAt  string `json:"started_at"`
	DeadlineAt string `json:"deadline_at"`
	// EndedAt is empty while the delegation is open.
	EndedAt string `json:"ended_at,omitzero"`
}

func shown(d topics.Delegation) Delegation {
	v := Delegation{
		CallbackID: d.CallbackID, SessionID: d.SessionID, Agent: d.Agent, Target: d.Target, Status: d.Status, Error: d.Error,
		Code: d.Code, Depth: d.Depth, Channel: d.Channel, StartedAt: isoOf(d.StartedMS), DeadlineAt: isoOf(d.DeadlineMS),
	}
	if d.EndedMS != 0 {
		v.EndedAt = isoOf(d.EndedMS)
	}
	return v
}

func isoOf(ms int64) string { return topics.Timestamp(time.UnixMilli(ms)) }

type (
	answer  = entrance.Answer
	request = entrance.Request
)

func delegationAnswer(d topics.Delegation) answer {
	v := shown(d)
	if d.Status == topics.DelegationCompleted {
		v.Result = &d.Result
	}
	return entrance.OK(v)
}

func listAnswer(entries []entry) answer {
	list := []Delegation{}
	for _, e := range entries {
		list = append(list, shown(e.Delegation))
	}
	return entrance.OK(map[string][]Delegation{"delegations": list})
}

// notFound is the answer about a delegation that does not exist, and about one that the caller may not see.
func notFound() answer { return entrance.Failed(http.StatusNotFound, "Unknown delegation") }

func notReady() answer { return entrance.NotReady("The delegations are not known yet") }

// copied returns a delegation whose texts do not keep its record in memory.
func copied(d topics.Delegation) topics.Delegation {
	for _, text := range []*string{&d.SessionID, &d.CallbackID, &d.Agent, &d.Target, (*string)(&d.Status), &d.Code, &d.Channel} {
		*text = strings.Clone(*text)
	}
	d.Result, d.Error = "", ""
	return d
}
