package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/topics"
)

const (
	waitLimit = 60 * time.Second
	testEpoch = 100
	agentID   = "a1"
)

// written are the records of a host, in place of the brokers.
type written struct {
	mu      sync.Mutex
	records []record
	failing int           // how many writes fail
	any     bool          // takes records of any kind, and keeps none
	largest int           // the size of the largest record that is taken; 0 is no limit
	away    chan struct{} // writes block until it is closed; nil for not at all
}

type record struct {
	key, topic string
	in         topics.CrewInput
}

var errAway = errors.New("no broker")

func (w *written) Publish(ctx context.Context, out ...processors.Outbound) error {
	if w.any {
		return nil
	}
	w.mu.Lock()
	away := w.away
	w.mu.Unlock()
	if away != nil {
		select {
		case <-away:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range out {
		catalog, err := topics.For("harbor")
		if err != nil {
			return err
		}
		d := catalog.CrewInputs.Codec().Unmarshal(o.Value)
		if d.Err != nil {
			return fmt.Errorf("%w: %w", processors.ErrTooLarge, d.Err)
		}
		if w.largest > 0 && len(o.Value) > w.largest {
			return processors.ErrTooLarge
		}
		if w.failing > 0 {
			w.failing--
			return errAway
		}
		w.records = append(w.records, record{key: o.Key, topic: o.Topic, in: d.Value})
	}
	return nil
}

func (w *written) all() []record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]record(nil), w.records...)
}

// rig is a host without brokers. A test gives it actions and sees its records.
type rig struct {
	t    *testing.T
	h    *Host
	dir  string // of the agents
	out  *written
	ctx  context.Context
	stop func()
	n    int
}

// newRig is a host whose agents do what a script says.
func newRig(t *testing.T, argv []string, change ...func(*rig, *Config, *times)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), out: &written{}}
	c := Config{
		Agent: "harbor", Name: "h1", Brokers: []string{"127.0.0.1:1"}, Commands: map[string][]string{"": argv}, Dirs: []string{r.dir},
		Env: append(DefaultEnv(), "GORACE", "GOCOVERDIR"),
	}
	limits := defaultTimes()
	limits.drain, limits.beat, limits.flush = time.Second, time.Hour, 10*time.Second
	for _, f := range change {
		f(r, &c, &limits)
	}
	var err error
	r.h, err = New(c)
	require.NoError(t, err)
	r.h.times = limits
	ctx, cancel := context.WithCancelCause(context.Background())
	r.ctx, r.h.stopped = ctx, cancel
	finish := r.h.open(r.out)
	r.h.begin(ctx, testEpoch)
	r.stop = sync.OnceFunc(func() {
		cancel(nil)
		finish()
	})
	t.Cleanup(r.stop)
	return r
}

// goAgent is the command line of an agent of the Go SDK.
func goAgent(t *testing.T, s crewtest.Script) []string {
	t.Helper()
	argv, err := crewtest.Command(t.TempDir(), s)
	require.NoError(t, err)
	return argv
}

// bothAgents runs a test with the agents of both SDKs.
func bothAgents(t *testing.T, test func(t *testing.T, command func(*testing.T, crewtest.Script) []string)) {
	t.Run("go", func(t *testing.T) { test(t, goAgent) })
	t.Run("typescript", func(t *testing.T) {
		a, err := crewtest.InstallTypeScript(t.Context(), "")
		if errors.Is(err, crewtest.ErrNoNode) {
			t.Skipf("the host is not tested with an agent of the TypeScript SDK of ACP: %v", err)
		}
		require.NoError(t, err)
		test(t, func(t *testing.T, s crewtest.Script) []string {
			argv, err := a.Command(t.TempDir(), s)
			require.NoError(t, err)
			return argv
		})
	})
}

// act gives the host an action and returns its ID.
func (r *rig) act(body crewbody.Body) string {
	r.t.Helper()
	r.n++
	return r.actAs(fmt.Sprintf("agent/%s/%d", agentID, r.n), testEpoch, body)
}

func (r *rig) actAs(id string, epoch int64, body crewbody.Body) string {
	r.t.Helper()
	r.action(topics.CrewAction{
		ActionID: id, Kind: body.Kind(), Host: "h1", Epoch: epoch, Subject: mailbox.Agent(agentID), Body: crewbody.Encode(body),
	})
	return id
}

func (r *rig) action(a topics.CrewAction) {
	r.t.Helper()
	raw, err := r.h.catalog.CrewActions.Codec().Marshal(a)
	require.NoError(r.t, err)
	r.h.onAction(r.ctx, processors.Inbound{Key: []byte(a.Subject), Value: raw})
}

// started starts an agent and waits for its session.
func (r *rig) started() (run, session string) {
	r.t.Helper()
	run = r.act(crewbody.Start{AgentID: agentID, Cwd: r.dir})
	return run, await[crewbody.SessionReady](r, 1)[0].SessionID
}

func (r *rig) prompt(run, session, text string) {
	r.t.Helper()
	r.act(crewbody.Send{AgentID: agentID, Run: run, PromptID: text, SessionID: session, Blocks: block(text)})
}

func block(text string) topics.Raw {
	raw, err := json.Marshal([]map[string]string{{"type": "text", "text": text}})
	if err != nil {
		panic(err)
	}
	return raw
}

// said are the bodies of one kind that the host has written so far.
func said[T crewbody.Body](r *rig) (bodies []T) {
	var kind T
	for _, rec := range r.out.all() {
		if rec.in.Kind != kind.Kind() {
			continue
		}
		body, err := crewbody.Decode[T](rec.in.Body)
		require.NoError(r.t, err)
		bodies = append(bodies, body)
	}
	return bodies
}

// await waits until the host has written n bodies of a kind.
func await[T crewbody.Body](r *rig, n int) (bodies []T) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		bodies = said[T](r)
		return len(bodies) >= n
	}, waitLimit, 5*time.Millisecond, "%T: %v", *new(T), lazily(func() any { return r.kinds() }))
	return bodies
}

type lazily func() any

func (l lazily) String() string { return fmt.Sprint(l()) }

// kinds are the kinds of all records, in order, each with its body for a failure.
func (r *rig) kinds() (kinds []string) {
	for _, rec := range r.out.all() {
		kinds = append(kinds, rec.in.Kind)
	}
	return kinds
}

// text is what the agent has said, replays apart.
func (r *rig) text() string { return r.chunks("agent_message_chunk", false) }

func (r *rig) chunks(kind string, replay bool) string {
	var text strings.Builder
	for _, u := range said[crewbody.Updates](r) {
		for _, raw := range u.Updates {
			var chunk struct {
				Kind    string `json:"sessionUpdate"`
				Content struct {
					Text string `json:"text"`
				} `json:"content"`
			}
			if u.Replay == replay && json.Unmarshal(raw, &chunk) == nil && chunk.Kind == kind {
				text.WriteString(chunk.Content.Text)
			}
		}
	}
	return text.String()
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func intOf(n int) *int { return &n }
