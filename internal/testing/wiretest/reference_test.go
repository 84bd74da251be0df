package wiretest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// flaw is one thing a broken pipeline does.
type flaw string

// reference is the turn pipeline in memory, as simple as can be: one goroutine, no state beyond the process, sessions
// by name whatever partition their records come from (so it needs no loop).
type reference struct {
	t        testing.TB
	names    Names
	flaw     flaw
	counts   map[string]int32
	consumer *kgo.Client
	producer *kgo.Client
	sessions map[string]*refSession
	out      []*kgo.Record

	thinkTimeout, toolTimeout time.Duration
}

type refSession struct {
	name     string
	history  []json.RawMessage
	cost     *float64
	user     *string
	open     *refTurn
	queue    []*refTurn
	seen     map[string]bool   // causes and request ids
	accepted map[digest]bool   // responses and results
	steps    map[digest]bool   // inputs of steps that are over
	routes   map[string][]byte // named
	route    []byte            // unnamed
	used     int               // unnamed routes that outputs carried
}

type refTurn struct {
	id, request string
	message     object
	route       []byte
	written     time.Time // of the record
	step        int
	input       object
	base        []json.RawMessage // history of this step
	calls       []*refCall        // of the step that waits for tools
	held        []*kgo.Record
	thinking    bool
	deadline    time.Time
}

type refCall struct {
	asked  toolItem
	raw    object
	result []byte   // a ToolUseResult
	first  *refCall // of a repeated id
}

func startReference(t testing.TB, bootstrap []string, agent string, p reference) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p.t, p.names, p.sessions = t, NamesOf(agent), map[string]*refSession{}
	var err error
	p.producer, err = kgo.NewClient(
		kgo.SeedBrokers(bootstrap...), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(0))
	require.NoError(t, err)
	p.counts, err = partitionCounts(ctx, p.producer, p.names.Inputs())
	require.NoError(t, err)
	p.consumer, err = kgo.NewClient(readerOptions(bootstrap, p.counts, kgo.ReadCommitted())...)
	require.NoError(t, err)
	group := &errgroup.Group{}
	group.Go(func() error { p.run(ctx); return nil })
	t.Cleanup(func() {
		stop()
		_ = group.Wait()
		p.consumer.Close()
		p.producer.Close()
	})
}

func (p *reference) run(ctx context.Context) {
	for ctx.Err() == nil {
		polling, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		fetches := p.consumer.PollRecords(polling, 200)
		stop()
		for it := fetches.RecordIter(); !it.Done(); {
			p.handle(it.Next())
			p.flush(ctx)
		}
		for _, s := range p.sessions {
			p.tick(s)
		}
		p.flush(ctx)
	}
}

func (p *reference) flush(ctx context.Context) {
	if len(p.out) == 0 {
		return
	}
	if err := p.producer.ProduceSync(ctx, p.out...).FirstErr(); err != nil && ctx.Err() == nil {
		p.t.Errorf("reference: %v", err)
	}
	p.out = nil
}

func (p *reference) session(name string) *refSession {
	if p.sessions[name] == nil {
		p.sessions[name] = &refSession{
			name: name, seen: map[string]bool{}, accepted: map[digest]bool{}, steps: map[digest]bool{},
			routes: map[string][]byte{},
		}
	}
	return p.sessions[name]
}

func (p *reference) emit(topic, key, id string, value string) {
	p.out = append(p.out, &kgo.Record{
		Topic: topic, Key: []byte(key), Value: []byte(value),
		Headers: []kgo.RecordHeader{{Key: headerID, Value: []byte(id)}},
	})
}

func (p *reference) dead(r *kgo.Record, reason string) {
	if p.flaw == flawNoLetter {
		return
	}
	value := r.Value
	if p.flaw == flawLetterBytes && len(value) > 2 {
		value = value[:len(value)-1]
	}
	p.out = append(p.out, &kgo.Record{
		Topic: p.names.DeadLetters, Key: r.Key, Value: value,
		Headers: append(errorHeaders(r, reason), kgo.RecordHeader{Key: headerGroup, Value: []byte(p.names.Group)}),
	})
}

func (p *reference) handle(r *kgo.Record) {
	id, _ := header(r, headerID)
	if _, ours := originOf(id); ours && (r.Topic == p.names.ToolUseDLQ || r.Topic == p.names.MessageInput) {
		return
	}
	if r.Topic == p.names.MessageInput {
		p.message(r)
		return
	}
	key := string(r.Key)
	if badKey(r.Key) {
		p.dead(r, "key")
		return
	}
	o, err := objectOf(r.Value)
	null := r.Value == nil || string(r.Value) == "null"
	s := p.session(key)
	switch {
	case r.Topic == p.names.ThinkDLQ:
		if s.open != nil && s.open.thinking && err == nil {
			p.end(s, s.open, "think_failed")
		}
	case null && r.Topic == p.names.Think:
		s.history, s.cost = nil, nil
	case null && r.Topic == p.names.ReplyTo:
		if s.used > 0 {
			s.used--
		} else {
			s.route = nil
		}
	case null && r.Topic == p.names.ToolUseDLQ:
	case err != nil:
		p.dead(r, "unreadable")
	case r.Topic == p.names.Think:
		p.thought(s, r, o)
	case r.Topic == p.names.ToolUseResult:
		p.result(s, r, o)
	case r.Topic == p.names.ToolUseDLQ:
		p.toolFailed(s, o)
	case r.Topic == p.names.ReplyTo:
		if id := o.text("request_id"); id != nil {
			s.routes[*id] = r.Value
		} else {
			p.bind(s, r)
		}
	case r.Topic == p.names.SessionControl:
		p.control(s, r, o)
	}
}

// bind gives a route to the oldest message that may have it, else to the next.
func (p *reference) bind(s *refSession, r *kgo.Record) {
	for _, t := range append([]*refTurn{s.open}, s.queue...) {
		if t != nil && t.request == "" && t.route == nil && !t.written.Before(r.Timestamp) {
			t.route = r.Value
			return
		}
	}
	s.route = r.Value
}

func badKey(key []byte) bool {
	text := string(key)
	return len(key) == 0 || !json.Valid([]byte(quote(text))) || quote(text) != quote(string([]rune(text))) ||
		containsNUL(text) || string([]rune(text)) != text
}

func containsNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

func (p *reference) control(s *refSession, r *kgo.Record, o object) {
	action := o.text("action")
	switch {
	case action == nil:
		p.dead(r, "no action")
	case *action == "purge":
		for s.open != nil {
			p.end(s, s.open, "cancelled")
		}
		delete(p.sessions, s.name)
	case *action == "cancel":
		id := o.text("request_id")
		for _, t := range append([]*refTurn{s.open}, s.queue...) {
			if t != nil && (id == nil && t == s.open || id != nil && *id == t.request) {
				p.end(s, t, "cancelled")
				return
			}
		}
	default:
		p.dead(r, "unknown action")
	}
}

func (p *reference) message(r *kgo.Record) {
	m := readMessage(r, p.counts[r.Topic])
	if !m.accepted || p.flaw == flawRefuse && m.cause != "" {
		p.dead(r, "no message")
		return
	}
	o, _ := objectOf(firstValue(r.Value))
	s := p.session(m.session)
	if s.seen[m.identity()] {
		return
	}
	s.seen[m.identity()] = true
	sum := sha256.Sum256([]byte(m.session + m.identity() + r.Topic + strconv.Itoa(int(r.Partition)) + m.at.String()))
	t := &refTurn{id: hex.EncodeToString(sum[:8]), request: m.request, message: o, written: r.Timestamp}
	if m.request == "" {
		t.route, s.route = s.route, nil
	}
	switch {
	case s.open == nil:
		s.open = t
		p.open(s)
	case len(s.queue) >= 16:
		p.end(s, t, "queue_full")
	case p.flaw == flawOrder:
		s.queue = append([]*refTurn{t}, s.queue...)
	default:
		s.queue = append(s.queue, t)
	}
}
