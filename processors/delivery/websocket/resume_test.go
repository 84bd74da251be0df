package websocket

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
)

// fakeFollower is a follower that replays given records.
type fakeFollower struct {
	mu      sync.Mutex
	records []processors.Inbound
	next    map[string]int64
	err     error
	before  func(ctx context.Context) // called before Replay returns
	since   time.Time                 // of the last Replay
	reads   int                       // calls of Replay
}

func (s *fakeFollower) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *fakeFollower) Ready() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (s *fakeFollower) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, processors.Inbound) bool,
) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = since
	s.reads++
	if s.err != nil {
		return 0, s.err
	}
	for _, r := range s.records {
		if r.Topic == topic && string(r.Key) == key && !r.Timestamp.Before(since) && !take(ctx, r) {
			return r.Offset + 1, nil
		}
	}
	if s.before != nil && topic == "pilot-message-input" {
		s.before(ctx)
	}
	return s.next[topic], nil
}

func (s *fixture) setFollower(f *fakeFollower) {
	s.follower = func(feed) follower { return f }
}

func (b *browser) require(want ...string) []got {
	b.t.Helper()
	var all []got
	for _, part := range want {
		g := b.next()
		require.Contains(b.t, g.text, part)
		all = append(all, g)
	}
	return all
}

func TestResumingClientReceivesWhatItMissed(t *testing.T) {
	s := newFixture(t)
	b := s.open().subscribe("s")
	s.take("message-input", "s", 1, `"one"`)
	last := b.next().id
	require.NoError(t, b.CloseNow())
	s.take("message-input", "s", 2, `"two"`)
	s.take("message-output", "s", 1, `{"content":"three"}`)
	again := s.open().resume("s", last)
	all := again.require(`"value":"two"`, `"pipeline_event","data":{"topic":"pilot-message-output"`, `"chat_response"`,
		`{"type":"resumed","data":{"session_id":"s","complete":true,"replayed":3}}`)
	s.take("message-input", "s", 3, `"four"`)
	again.require(`"value":"four"`)

	// It can resume between the two frames of one output, and after a replay.
	s.open().resume("s", all[1].id).require(`"chat_response"`, `"four"`, `"replayed":2`)
	s.open().resume("s", all[2].id).require(`"four"`, `"replayed":1`)
}

func TestMemoryIsBounded(t *testing.T) {
	s := newFixture(t, func(c *Config) { c.Replay = Replay{Frames: 3, Sessions: 2, TotalBytes: 2000} })
	b := s.open().subscribe("s")
	var ids []string
	for i := range 5 {
		s.take("message-input", "s", int64(i), strconv.Itoa(i))
		ids = append(ids, b.next().id)
	}
	require.NoError(t, b.CloseNow())
	s.open().resume("s", ids[1]).require(`"value":2`, `"value":3`, `"value":4`, `"replayed":3`)
	s.open().resume("s", ids[0]).require(`"complete":false`)
	require.Eventually(t, func() bool { return s.subscribers("s") == 2 }, waitLimit, time.Millisecond)
	s.open().subscribe("t")
	for i := range 20 {
		s.take("message-input", "t", int64(i), `"long enough to push the others out"`)
	}
	s.hub.mu.Lock()
	require.LessOrEqual(t, s.hub.bytes, 2000)
	require.LessOrEqual(t, len(s.hub.sessions["t"].recent), 3)
	s.hub.mu.Unlock()
	for i := range 5 {
		require.NoError(t, s.open().subscribe("u"+strconv.Itoa(i)).CloseNow())
		require.Eventually(t, func() bool { return s.subscribers("u"+strconv.Itoa(i)) == 0 }, waitLimit, time.Millisecond)
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	require.Equal(t, 2, s.hub.idle)
	require.Len(t, s.hub.sessions, 4)
}

// Another process sent the last frame, so this one reads the missed frames from the topics.
func TestClientOfAnotherProcessResumesFromTheTopics(t *testing.T) {
	first, second := newFixture(t), newFixture(t)
	b := first.open().subscribe("s")
	first.take("message-input", "s", 1, `"one"`)
	first.take("message-output", "s", 7, `{"content":"two"}`)
	last := b.require("one", "two", "two")[1].id // between event and answer

	all := []processors.Inbound{
		record("message-input", "s", 0, `"old"`, later(-time.Hour)),
		record("message-input", "s", 1, `"one"`),
		record("message-output", "s", 7, `{"content":"two"}`),
		record("tool-use", "s", 3, `"before its time"`, later(-time.Second)),
		record("tool-use", "s", 4, `"three"`, later(2*time.Second)),
		record("message-input", "s", 2, `"four"`, later(3*time.Second)),
		record("message-input", "other", 3, `"not mine"`, later(3*time.Second)),
		record("tool-use", "s", 5, `"five"`, later(4*time.Second)),
		record("message-output", "s", 8, `{"content":"two"}`, later(5*time.Second)),
	}
	f := &fakeFollower{records: all, next: map[string]int64{"pilot-message-input": 4}}
	// During the replay, this process receives a record that the replay sent and one that it did not send.
	f.before = func(context.Context) {
		second.take("message-input", "s", 2, `"four"`)
		second.take("message-input", "s", 4, `"six"`, later(time.Minute))
	}
	second.setFollower(f)
	again := second.open().resume("s", last)
	frames := again.require(`"chat_response"`, `"three"`, `"four"`, `"five"`, `"pipeline_event"`, `"chat_response"`,
		`"complete":true,"replayed":6`, `"six"`)
	require.Equal(t, noon.UnixMilli(), f.since.UnixMilli(), "older records than the session are not read")

	// A third process resumes from a replayed frame.
	f.before = nil
	third := newFixture(t)
	third.setFollower(f)
	third.open().resume("s", frames[2].id).require(`"five"`, `"pipeline_event"`, `"chat_response"`, `"replayed":3`)
}

func TestIncompleteResumeStatesTheReason(t *testing.T) {
	first := newFixture(t)
	b := first.open().subscribe("s")
	first.take("message-input", "s", 1, `"one"`)
	last := b.next().id
	many := &fakeFollower{}
	for i := range 300 {
		many.records = append(many.records, record("message-input", "s", int64(i+2), `{}`, later(time.Second)))
	}
	for name, c := range map[string]struct {
		session, last string
		follower      *fakeFollower
		after         time.Duration
		reason        string
	}{
		"no id":             {"s", "x", &fakeFollower{}, 0, reasonUnknown},
		"another session's": {"t", last, &fakeFollower{}, 0, reasonUnknown},
		"long ago":          {"s", last, &fakeFollower{}, time.Hour, reasonLongAgo},
		"too much":          {"s", last, many, 0, reasonTooMuch},
		"away":              {"s", last, &fakeFollower{err: errors.New("s3cret")}, 0, reasonAway},
		"not running":       {"s", last, nil, 0, reasonAway},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			if c.follower != nil {
				s.setFollower(c.follower)
			}
			s.clock.Advance(c.after)
			b := s.open().resume(c.session, c.last)
			require.Equal(t, `{"type":"resumed","data":{"session_id":"`+c.session+`","complete":false,"replayed":0,`+
				`"reason":"`+c.reason+`"}}`, b.next().text)
			b.none(c.session)
		})
	}
}

func TestNewSubscriptionCancelsAResume(t *testing.T) {
	s := newFixture(t)
	entered := make(chan struct{})
	s.setFollower(&fakeFollower{before: func(ctx context.Context) {
		close(entered)
		<-ctx.Done()
	}})
	other := newFixture(t)
	b := other.open().subscribe("s")
	other.take("message-input", "s", 1, `"one"`)
	again := s.open().resume("s", b.next().id)
	<-entered
	again.send(`{"type":"subscribe","session_id":"t"}`)
	require.Eventually(t, func() bool { return s.subscribers("t") == 1 }, waitLimit, time.Millisecond)
	s.take("message-input", "s", 2, `"of s"`)
	again.none("t")
}
