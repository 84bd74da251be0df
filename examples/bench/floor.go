package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/wiretest"
)

// The floor is what the same records cost without what the processor is for: a loop that reads, splices and writes, and
// keeps in memory what it needs to answer. It has no table, no changelog, no ids, no deadlines and no checks, commits
// offsets every five seconds whatever was written, and forgets everything when it ends.

// plainLoop answers the records of an agent from one goroutine.
type plainLoop struct {
	names    wiretest.Names
	client   *kgo.Client
	sessions map[string]*plainSession
	failed   chan error
	clock    stamp
}

// plainSession is a session's history and its open calls.
type plainSession struct {
	history       []byte // an array's elements
	total         int
	calls         int
	content, list []byte // of the tool message
}

// runFloor runs until ctx ends. It calls ready when it has its partitions.
func runFloor(ctx context.Context, c childSpec, ready func()) error {
	names := wiretest.NamesOf(c.Agent)
	client, err := kgo.NewClient(append(producing(c.Brokers),
		kgo.ConsumerGroup(names.Group), kgo.ConsumeTopics(names.MessageInput, names.Think, names.ToolUseResult),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second),
		kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(4<<20),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { ready() }),
	)...)
	if err != nil {
		return fmt.Errorf("bench: floor: %w", err)
	}
	defer client.Close()
	l := &plainLoop{names: names, client: client, sessions: map[string]*plainSession{}, failed: make(chan error, 1)}
	for {
		f := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		now := l.clock.at(time.Now())
		f.EachRecord(func(r *kgo.Record) { l.answer(r, now) })
		select {
		case err := <-l.failed:
			return fmt.Errorf("bench: floor: %w", err)
		default:
		}
	}
}

func (l *plainLoop) answer(r *kgo.Record, now string) {
	s := l.sessions[string(r.Key)]
	if s == nil {
		s = &plainSession{}
		l.sessions[string(r.Key)] = s
	}
	switch r.Topic {
	case l.names.MessageInput:
		l.ask(r.Key, s, r.Value, now)
	case l.names.Think:
		l.thought(r.Key, s, r.Value, now)
	default:
		l.result(r.Key, s, r.Value, now)
	}
}

// ask writes a think-request.
func (l *plainLoop) ask(key []byte, s *plainSession, latest []byte, now string) {
	v := make([]byte, 0, len(s.history)+len(latest)+256)
	v = append(v, `{"session_id":"`...)
	v = append(v, key...)
	v = append(v, `","user_id":"`...)
	v = append(v, key...)
	v = append(v, `","cost":0.0063,"history":[`...)
	v = append(v, s.history...)
	v = append(v, `],"latest_input":`...)
	v = append(v, latest...)
	v = append(v, `,"memoir_context":null,"timestamp":"`...)
	v = append(v, now...)
	v = append(v, `"}`...)
	l.send(l.names.Enriched, key, v)
}

// thought takes the history a response leaves, and hands out its calls or its answer.
func (l *plainLoop) thought(key []byte, s *plainSession, value []byte, now string) {
	previous, rest, ok := bigField(value, `"previous_messages":`, `,"last_input_message":`)
	latest, rest, found := bytes.Cut(rest, []byte(`,"last_input_response":`))
	said, rest, same := bytes.Cut(rest, []byte(`,"tool_uses":`))
	if !ok || !found || !same {
		l.fail(io.ErrUnexpectedEOF)
		return
	}
	s.history = s.history[:0]
	if len(previous) > 2 {
		s.history = append(append(s.history, inside(previous)...), ',')
	}
	s.history = append(append(s.history, latest...), ',')
	s.history = append(s.history, inside(said)...)
	if rest[0] == '[' {
		l.handOut(key, s, rest)
		return
	}
	answer, ok := cut(said, `"content":`, `,"timestamp":`)
	if !ok {
		l.fail(io.ErrUnexpectedEOF)
		return
	}
	v := make([]byte, 0, len(answer)+256)
	v = append(v, `{"session_id":"`...)
	v = append(v, key...)
	v = append(v, `","user_id":"`...)
	v = append(v, key...)
	v = append(v, `","content":`...)
	v = append(v, answer...)
	v = append(v, `,"input_tokens":311,"output_tokens":58,"cost":0.0063,"source_agent":"agent-1","timestamp":"`...)
	v = append(v, now...)
	v = append(v, `"}`...)
	l.send(l.names.MessageOutput, key, v)
}

// handOut writes the elements of an array of objects as records of their own.
func (l *plainLoop) handOut(key []byte, s *plainSession, array []byte) {
	s.total, s.calls, s.content, s.list = 0, 0, s.content[:0], s.list[:0]
	depth, start, quoted := 0, 0, false
	for i := 1; i < len(array); i++ {
		switch c := array[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			if depth == 0 {
				start = i
			}
			depth++
		case c == '}':
			depth--
			if depth == 0 {
				s.total++
				s.calls++
				l.send(l.names.ToolUse, key, array[start:i+1])
			}
		case c == ']' && depth == 0:
			return
		}
	}
}

// result collects a call's result; with the last one the model is asked again.
func (l *plainLoop) result(key []byte, s *plainSession, value []byte, now string) {
	id, ok := text(value, `"tool_use_id":"`)
	name, named := text(value, `"name":"`)
	_, rest, given := bytes.Cut(value, []byte(`"result":`))
	end := bytes.LastIndex(rest, []byte(`,"latency_ms":`))
	if !ok || !named || !given || end < 0 {
		l.fail(io.ErrUnexpectedEOF)
		return
	}
	if len(s.content) > 0 {
		s.content, s.list = append(s.content, ','), append(s.list, ',')
	}
	s.content = append(s.content, `{"tool_use_id":"`...)
	s.content = append(s.content, id...)
	s.content = append(s.content, `","name":"`...)
	s.content = append(s.content, name...)
	s.content = append(s.content, `","result":`...)
	s.content = append(s.content, rest[:end]...)
	s.content = append(s.content, `,"status":"success"}`...)
	s.list = append(s.list, value...)
	if s.calls--; s.calls > 0 {
		return
	}
	m := make([]byte, 0, len(s.content)+len(s.list)+256)
	m = append(m, `{"session_id":"`...)
	m = append(m, key...)
	m = append(m, `","user_id":"`...)
	m = append(m, key...)
	m = append(m, `","role":"tool","content":[`...)
	m = append(m, s.content...)
	m = append(m, `],"timestamp":"`...)
	m = append(m, now...)
	m = append(m, `","metadata":{"tool_results":[`...)
	m = append(m, s.list...)
	m = fmt.Appendf(m, `],"tool_count":%d,"source":"tool-execution"}}`, s.total)
	l.ask(key, s, m, now)
}

func (l *plainLoop) send(topic string, key, value []byte) {
	l.client.Produce(context.Background(), &kgo.Record{Topic: topic, Key: key, Value: value},
		func(_ *kgo.Record, err error) {
			if err != nil {
				l.fail(err)
			}
		})
}

func (l *plainLoop) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}
