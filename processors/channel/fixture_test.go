package channel

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/topics"
)

// platform is an adapter that keeps what it accepts.
type platform struct {
	traits adapter.Traits
	// fail returns the error for the n-th call from 1, nil to accept the chunk.
	fail func(n int, c adapter.Chunk) error

	mu       sync.Mutex
	calls    int
	accepted []adapter.Chunk
}

func (p *platform) Channel() string        { return "slack" }
func (p *platform) Traits() adapter.Traits { return p.traits }

func (p *platform) Send(_ context.Context, c adapter.Chunk) (adapter.Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.fail != nil {
		if err := p.fail(p.calls, c); err != nil {
			return adapter.Sent{}, err
		}
	}
	p.accepted = append(p.accepted, c)
	return adapter.Sent{ID: "m" + strconv.Itoa(len(p.accepted))}, nil
}

func (p *platform) texts() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.accepted {
		all = append(all, c.Text)
	}
	return all
}

func (p *platform) keys() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.accepted {
		all = append(all, c.Key)
	}
	return all
}

// fixture is a transport with the account main of one platform and settings that can change.
type fixture struct {
	*platform
	live atomic.Pointer[Settings]
	t    *Transport
}

func newFixture(t *testing.T, traits adapter.Traits, change ...func(*Account)) *fixture {
	t.Helper()
	f := &fixture{platform: &platform{traits: traits}}
	f.configure(change...)
	f.t = f.process(t)
	return f
}

// process returns a transport of another process, which remembers nothing.
func (f *fixture) process(t *testing.T) *Transport {
	t.Helper()
	tr, err := NewTransport("front", f.live.Load, []AccountAdapter{{Name: "main", Adapter: f.platform}}, TransportConfig{})
	require.NoError(t, err)
	return tr
}

func (f *fixture) configure(change ...func(*Account)) {
	a := Account{Channel: "slack", Name: "main"}
	for _, c := range change {
		c(&a)
	}
	f.live.Store(&Settings{Accounts: []Account{a}})
}

var room = topics.Origin{Channel: "slack", Account: "main", Recipient: "C1", Thread: "17.1", MessageID: "17.2", User: "U1"}

func answer(content string) topics.Delivery { return deliver(topics.Output{Content: content}) }

func failedOutput(code topics.Code, message string) topics.Delivery {
	status := "error"
	return deliver(topics.Output{Content: message, Status: &status, Error: &topics.OutputError{Code: code, Message: message}})
}

var outputs = func() topics.Topic[topics.Output] {
	c, err := topics.For("front")
	if err != nil {
		panic(err)
	}
	return c.MessageOutput
}()

func deliver(o topics.Output) topics.Delivery {
	body, err := outputs.Codec().Marshal(o)
	if err != nil {
		panic(err)
	}
	return topics.Delivery{
		DeliveryID: "d-1", SessionID: "s", Attempt: 1, Route: room.Destination(), Body: body,
		Channel: topics.OriginRoute(topics.EncodeOrigin(room), nil),
	}
}

// exchange makes an attempt and reads its report.
func exchange(t *testing.T, tr *Transport, d topics.Delivery) (Report, topics.Raw, error) {
	t.Helper()
	raw, err := tr.Exchange(t.Context(), sink.Attempt{Delivery: d})
	r, ok := ReadReport(raw)
	require.Equal(t, raw != nil, ok)
	return r, raw, err
}

func failure(t *testing.T, err error) sink.Failure {
	t.Helper()
	var f *sink.Failure
	require.ErrorAs(t, err, &f)
	return *f
}

// third fails the third call.
func third(err error) func(int, adapter.Chunk) error {
	return func(n int, _ adapter.Chunk) error {
		if n == 3 {
			return err
		}
		return nil
	}
}

var errSecret = errors.New("post https://token@slack.invalid: secret")

// words is five chunks within a limit of 4 bytes.
const words = "aaaa bbbb cccc dddd eeee"

func four() adapter.Traits {
	return adapter.Traits{Format: text.Plain, Limit: text.Limit{Max: 4}, Threads: true}
}

var chunksOfWords = strings.Fields(words)

// Bounds of require.Eventually.
const (
	eventually = 30 * time.Second
	tick       = time.Millisecond
)
