package turn

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

// View is what an operator may see of a session: IDs, sizes, costs and deadlines, but no text of the conversation. Times are ISO
// 8601. It encodes to JSON. Inspect returns it.
type View struct {
	SessionID string `json:"session_id"`
	// RowVersion is the format of the row. Builds that do not know it refuse to read the row.
	RowVersion uint32 `json:"row_version"`
	UserID     string `json:"user_id,omitempty"`
	// Messages and HistoryBytes are the size of the history that the model is sent, and HiddenBytes that of older exchanges, which
	// it is no longer sent.
	Messages     int `json:"messages"`
	HistoryBytes int `json:"history_bytes"`
	HiddenBytes  int `json:"hidden_bytes"`
	// Cost is the cost of the session in dollars, nil if it is not known.
	Cost *float64 `json:"cost,omitempty"`
	// Turn is the open turn, nil if there is none, and Waiting are the messages that wait for theirs, in order.
	Turn    *TurnView     `json:"turn,omitempty"`
	Waiting []WaitingView `json:"waiting"`
	// ChangedAt is when the session last changed. DeadlineAt is its next deadline, empty for none.
	ChangedAt  string `json:"changed_at"`
	DeadlineAt string `json:"deadline_at,omitempty"`
}

// TurnView is an open turn.
type TurnView struct {
	TurnID    string `json:"turn_id"`
	RequestID string `json:"request_id,omitempty"`
	// AcceptedAt is the time of the turn's message, empty if it is not known.
	AcceptedAt string `json:"accepted_at,omitempty"`
	// Step is the number of the step, from 1.
	Step int `json:"step"`
	// WaitsFor is one of the Wait constants, and DeadlineAt is when the turn stops waiting. It is empty while the turn waits for gates
	// only, those of its calls or of its think step, which have deadlines of their own.
	WaitsFor   string     `json:"waits_for"`
	DeadlineAt string     `json:"deadline_at,omitempty"`
	Calls      []CallView `json:"calls,omitempty"`
}

// What an open turn waits for.
const (
	WaitModel     = "model"
	WaitTools     = "tools"
	WaitGates     = "gates" // all open calls, or the think step, wait for a person
	WaitCompactor = "compactor"
)

// CallView is a tool call of the open step.
type CallView struct {
	ToolUseID string `json:"tool_use_id"`
	Name      string `json:"name"`
	// Open says that the call has no result yet. An open call with a GateID waits for the gate.
	Open       bool   `json:"open"`
	GateID     string `json:"gate_id,omitempty"`
	DeadlineAt string `json:"deadline_at,omitempty"`
}

// WaitingView is a message that waits for its turn.
type WaitingView struct {
	TurnID    string `json:"turn_id"`
	RequestID string `json:"request_id,omitempty"`
	Bytes     int    `json:"bytes"`
}

// Inspect returns the view of a session. The row is a value of the table, as Processor.Get and a goka.View with TableCodec
// return it; nil is a session without a row. The error is that of the codec: a row of a newer build cannot be read.
func Inspect(session string, row any) (View, error) {
	s, err := stateOf(row)
	if err != nil {
		return View{}, err
	}
	v := View{
		SessionID: session, RowVersion: s.GetVersion(), UserID: s.GetUserId(), Messages: int(s.GetHistoryLength()),
		Waiting: []WaitingView{}, ChangedAt: isoOrEmpty(s.GetTouchedMs()), DeadlineAt: isoOrEmpty(s.GetDeadlineMs()),
	}
	if s == nil {
		return v, nil
	}
	v.HistoryBytes, v.HiddenBytes, v.Cost = lengthOf(s.HistoryParts)+len(s.History), hiddenSize(s), s.Cost
	for _, a := range s.Waiting {
		v.Waiting = append(v.Waiting, WaitingView{a.TurnId, a.GetRequestId(), len(a.Input)})
	}
	if s.Turn != nil {
		v.Turn = viewOfTurn(s.Turn)
	}
	return v, nil
}

func viewOfTurn(t *turnrow.OpenTurn) *TurnView {
	v := &TurnView{
		TurnID: t.Message.GetTurnId(), RequestID: t.Message.GetRequestId(), Step: int(t.Step), WaitsFor: WaitModel,
		DeadlineAt: isoOrEmpty(t.DeadlineMs), AcceptedAt: isoOrEmpty(t.Message.GetTimestampMs()),
	}
	open, gates := 0, 0
	for _, c := range t.Calls {
		call := CallView{ToolUseID: c.GetToolUseId(), Name: c.GetName(), Open: !ended(c)}
		if call.Open {
			open++
			call.DeadlineAt = isoOrEmpty(callDeadline(t, c))
		}
		if call.Open && c.Gate != nil {
			gates++
			call.GateID = c.Gate.GateId
		}
		v.Calls = append(v.Calls, call)
	}
	switch {
	case open > 0 && open == gates, t.StoppedMs != 0:
		v.WaitsFor, v.DeadlineAt = WaitGates, ""
	case len(t.Calls) > 0:
		v.WaitsFor = WaitTools
	case t.Compaction != nil:
		v.WaitsFor = WaitCompactor
	}
	return v
}

// History returns the conversation after the last answered turn: a JSON array of messages, nil for none. It is text of people:
// show it only on request. part returns a part of the session's row by its number, nil if there is none; processors.TableKey
// finds them among the records of the table's topic. The result may alias the row.
func History(row any, part func(number uint32) ([]byte, error)) (topics.Raw, error) {
	s, err := stateOf(row)
	if err != nil || s == nil {
		return nil, err
	}
	full, err := (&rowLayout{parts: partsBy(part)}).read(stateLargeFields(s)[history])
	if err != nil {
		return nil, fmt.Errorf("turn: history: %w", err)
	}
	return full, nil
}

// partsBy are the parts that a function returns.
type partsBy func(number uint32) ([]byte, error)

func (p partsBy) Part(number uint32) ([]byte, error) { return p(number) }

func isoOrEmpty(ms int64) string {
	if ms == 0 {
		return ""
	}
	return topics.Timestamp(time.UnixMilli(ms))
}
