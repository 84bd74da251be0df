package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/wiretest"
)

// The floor is the cost of the same records without the guarantees of the processor: a loop that reads, splices and
// writes records, and stores in memory only what it needs to answer. It has no table, changelog, IDs, deadlines or checks,
// commits offsets every five seconds even if outputs are not acknowledged, and loses its state when it stops. It decodes
// records as JSON and copies histories as raw values. The bare floor finds fields by their position, which works only with
// this player.

// plainLoop answers the records of an agent from one goroutine. write sends a record.
type plainLoop struct {
	read     fieldReader
	names    wiretest.Names
	sessions map[string]*plainSession
	failed   chan error
	clock    timestampCache
	write    func(topic string, key, value []byte)
}

// plainSession is a session's history and its open calls.
type plainSession struct {
	history       []byte // an array's elements
	total         int
	calls         int
	content, list []byte // of the tool message
}

func newPlainLoop(names wiretest.Names) *plainLoop {
	return &plainLoop{
		read: byJSON{}, names: names, sessions: map[string]*plainSession{}, failed: make(chan error, 1),
	}
}

// runFloor runs until ctx ends. It calls ready when it has its partitions.
func runFloor(ctx context.Context, c childSpec, ready func()) error {
	names := wiretest.NamesOf(c.Agent)
	client, err := kgo.NewClient(append(producerOptions(c.Brokers),
		kgo.ConsumerGroup(names.Group), kgo.ConsumeTopics(names.MessageInput, names.Think, names.ToolUseResult),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second),
		kgo.FetchMaxBytes(16<<20), kgo.FetchMaxPartitionBytes(4<<20),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { ready() }),
	)...)
	if err != nil {
		return fmt.Errorf("bench: floor: %w", err)
	}
	defer client.Close()
	l := newPlainLoop(names)
	if c.Kind == kindBareFloor {
		l.read = byPosition{}
	}
	l.write = func(topic string, key, value []byte) {
		client.Produce(context.Background(), &kgo.Record{Topic: topic, Key: key, Value: value},
			func(_ *kgo.Record, err error) {
				if err != nil {
					l.fail(err)
				}
			})
	}
	for {
		f := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		now := l.clock.at(time.Now())
		f.EachRecord(func(r *kgo.Record) { l.answer(r.Topic, r.Key, r.Value, now) })
		select {
		case err := <-l.failed:
			return fmt.Errorf("bench: floor: %w", err)
		default:
		}
	}
}

func (l *plainLoop) answer(topic string, key, value []byte, now string) {
	s := l.sessions[string(key)]
	if s == nil {
		s = &plainSession{}
		l.sessions[string(key)] = s
	}
	switch topic {
	case l.names.MessageInput:
		l.ask(key, s, value, now)
	case l.names.Think:
		l.thought(key, s, value, now)
	default:
		l.result(key, s, value, now)
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
	l.write(l.names.Enriched, key, v)
}

// thought stores the history of a response and writes its tool calls or its answer.
func (l *plainLoop) thought(key []byte, s *plainSession, value []byte, now string) {
	t, err := l.read.thought(value)
	if err != nil {
		l.fail(err)
		return
	}
	s.history = s.history[:0]
	if len(t.previous) > 2 {
		s.history = append(append(s.history, arrayContents(t.previous)...), ',')
	}
	s.history = append(append(s.history, t.latest...), ',')
	s.history = append(s.history, arrayContents(t.said)...)
	if len(t.uses) > 0 {
		s.total, s.calls, s.content, s.list = len(t.uses), len(t.uses), nil, nil
		for _, item := range t.uses {
			l.write(l.names.ToolUse, key, item)
		}
		return
	}
	v := make([]byte, 0, len(t.answer)+256)
	v = append(v, `{"session_id":"`...)
	v = append(v, key...)
	v = append(v, `","user_id":"`...)
	v = append(v, key...)
	v = append(v, `","content":`...)
	v = append(v, t.answer...)
	v = append(v, `,"input_tokens":311,"output_tokens":58,"cost":0.0063,"source_agent":"agent-1","timestamp":"`...)
	v = append(v, now...)
	v = append(v, `"}`...)
	l.write(l.names.MessageOutput, key, v)
}

// result collects the result of a call; the last one writes the next think-request.
func (l *plainLoop) result(key []byte, s *plainSession, value []byte, now string) {
	r, err := l.read.result(value)
	if err != nil {
		l.fail(err)
		return
	}
	if len(s.content) > 0 {
		s.content, s.list = append(s.content, ','), append(s.list, ',')
	}
	s.content = appendEntry(s.content, r)
	s.list = append(s.list, value...)
	if s.calls--; s.calls > 0 {
		return
	}
	m := make([]byte, 0, len(s.content)+len(s.list)+256)
	m = appendToolMessage(m, key, s.content, s.list, s.total, now)
	s.content, s.list = nil, nil
	l.ask(key, s, m, now)
}

func (l *plainLoop) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
}
