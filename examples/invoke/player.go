package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// player is a model that plays a script: it writes the events of a turn to {agent}-agent-events one after another.
type player struct {
	topics topics.Catalog
	to     *processors.KafkaPublisher
	pace   time.Duration
	turns  map[string]turnLine // by id; nil: the built-in script
}

// scriptLine is the turn that is played without -turns: a text, a tool call and another text.
const scriptLine = `{"id":"script","stop_reason":"end_turn","events":[
	{"type":"message_start","id":"msg-0"},
	{"type":"message_delta","id":"msg-0","delta":"Let me "},
	{"type":"message_delta","id":"msg-0","delta":"look."},
	{"type":"message_end","id":"msg-0"},
	{"type":"tool_call","id":"call-1","name":"berth_lookup","input":{"at":"18:00"}},
	{"type":"tool_result","id":"call-1","output":"N4","isError":false},
	{"type":"message_start","id":"msg-1"},
	{"type":"message_delta","id":"msg-1","delta":"Berth "},
	{"type":"message_delta","id":"msg-1","delta":"N4 is "},
	{"type":"message_delta","id":"msg-1","delta":"free at 18:00."},
	{"type":"message_end","id":"msg-1"},
	{"type":"usage","input":21,"output":9,"total":30},
	{"type":"done"}]}`

func newPlayer(s settings) (*player, error) {
	p := &player{pace: s.pace}
	if s.turns == "" {
		return p, nil
	}
	file, err := os.ReadFile(s.turns)
	if err != nil {
		return nil, err
	}
	p.turns = map[string]turnLine{}
	for line := range bytes.Lines(file) {
		var t turnLine
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := t.read(line); err != nil {
			return nil, fmt.Errorf("%s: %w", s.turns, err)
		}
		p.turns[plain(t.id)] = t
	}
	return p, nil
}

// errNoTurn is the error of a message that does not name a turn of the file.
var errNoTurn = errors.New("no turn has this id")

// Think implements think.Model. A repeated step writes the same records again, which readers drop as duplicates.
func (p *player) Think(ctx context.Context, step think.Step) (think.Reply, error) {
	request, _ := topics.Lookup(step.Input().Metadata, "request_id")
	w := writing{player: p, session: step.SessionID, turn: plain(request)}
	t, ok := p.turns[plain(topics.Raw(step.Input().Content))]
	if p.turns == nil {
		ok = true
		if err := t.read([]byte(scriptLine)); err != nil {
			return think.Reply{}, err
		}
	}
	if !ok {
		text := errNoTurn.Error()
		return think.Reply{}, errors.Join(errNoTurn, w.end(ctx, topics.AgentResult{Error: &text}))
	}
	events, err := topics.Elements(t.events)
	if err != nil {
		return think.Reply{}, err
	}
	f := folder.NewFolder()
	for _, raw := range events {
		if raw == nil {
			raw = topics.Raw("null")
		}
		if err := w.write(ctx, topics.AgentEvent{Event: raw}); err != nil {
			return think.Reply{}, err
		}
		if e, err := folder.DecodeEvent(raw); err == nil {
			if err := f.Add(e); err != nil {
				return think.Reply{}, err
			}
		}
	}
	if err := w.end(ctx, topics.AgentResult{OK: true, StopReason: reason(t.stopReason)}); err != nil {
		return think.Reply{}, err
	}
	text, err := f.AssistantText()
	if text == "" {
		text = "(no text)" // an empty reply would be an error of the turn
	}
	return think.Say(text), err
}

// plain returns the text of a JSON string; empty for any other value.
func plain(v topics.Raw) string {
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	s, _ := jsontext.AppendUnquote(nil, v) // the error reports what was replaced
	return string(s)
}

func reason(v topics.Raw) *string {
	if jsontext.Value(v).Kind() != '"' {
		return nil
	}
	s := plain(v)
	return &s
}

// writing writes a turn's records in order.
type writing struct {
	*player
	session, turn string
	seq           int64
}

// end writes the terminal record.
func (w *writing) end(ctx context.Context, r topics.AgentResult) error {
	return w.write(ctx, topics.AgentEvent{Result: &r})
}

func (w *writing) write(ctx context.Context, e topics.AgentEvent) error {
	if w.seq++; w.seq > 1 && w.pace > 0 {
		timer := time.NewTimer(w.pace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	e.SessionID, e.TurnID, e.Attempt, e.Seq = w.session, w.turn, 1, w.seq
	out, err := processors.OutboundOf(w.topics.AgentEvents, w.session, e, fmt.Sprintf("%s/1/%d", w.turn, w.seq))
	if err != nil {
		return err
	}
	return w.to.Publish(ctx, out)
}
