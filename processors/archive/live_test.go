package archive

import (
	"context"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

// live is an agent that runs several times, on topics that are moved in between. It counts what costs money.
type live struct {
	*world
	guarantee processors.Guarantee

	mu     sync.Mutex
	models map[string]int // calls of the model, by step
	paid   int
	tokens map[string]string // of open calls, by session
}

func (l *live) model(_ context.Context, s think.Step) (think.Reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models[s.Key]++
	if *s.Input().Role != "user" || topics.Text(s.Input().Content) == "hello" {
		return think.Say("done"), nil
	}
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{
		ID: "call-" + s.Key, Name: topics.Text(s.Input().Content), Input: topics.Raw(`{}`),
	}}}}, nil
}

// run runs the agent until stop is called.
func (l *live) run(ahead time.Duration) (a *agent.Agent, stop func()) {
	l.Helper()
	pay := tools.Tool{Name: "pay", Func: func(_ context.Context, c tools.Call) (any, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.paid++
		l.Logf("paid by the run that is %s ahead: %s", ahead, c.ToolUseID)
		return "paid", nil
	}}
	slow := tools.Tool{Name: "slow", Func: func(_ context.Context, c tools.Call) (any, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		token, err := c.Token()
		l.tokens[c.SessionID] = token
		return tools.Pending{}, err
	}}
	a, err := agent.New(l.cfg.Catalog.Agent, agent.Config{
		Model: think.Func(l.model), Tools: []tools.Tool{pay, slow}, Brokers: l.cfg.Brokers, Open: true,
		CallbackSecret: base64.StdEncoding.EncodeToString(make([]byte, 32)),
		Approval:       &approval.Policy{Default: approval.Allow, Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask}}},
		Kafka: []processors.Option{
			processors.WithGuarantee(l.guarantee), processors.WithInstance("i"), processors.WithClock(early{clock.System(), ahead}),
		},
		Logger: zaptest.NewLogger(l.T, zaptest.Level(zap.ErrorLevel)),
	})
	require.NoError(l, err)
	ctx, end := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		end()
		require.NoError(l, <-ran)
	})
	l.Cleanup(stop)
	select {
	case <-a.Ready():
	case err := <-ran:
		ran <- err
		require.NoError(l, err)
	}
	return a, stop
}

// early is a clock that is ahead.
type early struct {
	clock.Clock
	by time.Duration
}

func (e early) Now() time.Time { return e.Clock.Now().Add(e.by) }

// ask sends a request to a door.
func (l *live) ask(a *agent.Agent, method, path, body, token string) (code int, answer string) {
	l.Helper()
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	raw, err := io.ReadAll(w.Body)
	require.NoError(l, err)
	return w.Code, string(raw)
}

func (l *live) say(a *agent.Agent, session, text string) {
	l.Helper()
	code, answer := l.ask(a, http.MethodPost, "/api/chat", `{"session_id":"`+session+`","content":"`+text+`"}`, "")
	require.Equal(l, http.StatusOK, code, answer)
}

// answered waits until a session has a number of answers.
func (l *live) answered(session string, n int) {
	l.Helper()
	require.Eventually(l, func() bool {
		found := 0
		for _, records := range l.records(l.cfg.Catalog.MessageOutput.Name()) {
			for _, r := range records {
				if string(r.Key) == session {
					found++
				}
			}
		}
		return found == n
	}, wait, 100*time.Millisecond, "%s has not %d answers", session, n)
}

func (l *live) token(session string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tokens[session]
}

// refuses begins a repartition. A group whose program does not create topics does not start then either.
func (l *live) refuses(a *agent.Agent, to int32) {
	l.Helper()
	var seen []string
	require.ErrorIs(l, stopAt(l.Context(), l.cfg, to, 8, &seen), errStop)
	graphs, err := a.Graphs()
	require.NoError(l, err)
	for _, graph := range graphs {
		p, err := processors.New(l.cfg.Brokers, graph, processors.WithGuarantee(l.guarantee), processors.WithInstance("i"))
		require.NoError(l, err)
		require.ErrorIs(l, p.Run(l.Context()), topics.ErrArchive, graph.Group())
	}
	pay := map[string]tools.Func{"pay": func(context.Context, tools.Call) (any, error) { return nil, errStop }}
	worker, err := tools.NewWorker(l.cfg.Catalog.Agent, struct{ processors.Publisher }{}, pay, tools.Config{})
	require.NoError(l, err)
	require.ErrorIs(l, worker.Run(l.Context(), l.cfg.Brokers), topics.ErrArchive)
}

// child is what a process does that is killed.
type child struct {
	Brokers []string
	Agent   string
	What    string
	Dir     string
	To      int32
}

func runChild(ctx context.Context, c child) (err error) {
	catalog, err := topics.For(c.Agent)
	if err != nil {
		return err
	}
	cfg := Config{Brokers: c.Brokers, Catalog: catalog, Kafka: []processors.Option{processors.WithLogger(kill.Logger(zap.InfoLevel))}}
	switch c.What {
	case "backup":
		_, err = Backup(ctx, cfg, c.Dir)
	case "restore":
		_, err = Restore(ctx, cfg, c.Dir)
	default:
		_, err = Repartition(ctx, cfg, c.To)
	}
	return err
}

// throughKills runs a child again and again, and kills it, until one of them ends by itself.
func (w *world) throughKills(c child) {
	w.Helper()
	c.Brokers, c.Agent = w.cfg.Brokers, w.cfg.Catalog.Agent
	kills, limit := 0, 200*time.Millisecond
	for ; ; limit += limit / 3 {
		p := kill.Start(w.T, "archive", c)
		timer := time.NewTimer(rand.N(limit))
		select {
		case <-p.Ended():
		case <-timer.C:
			if p.Kill() == nil {
				kills++
				continue
			}
		}
		timer.Stop()
		require.NoError(w, p.Wait(w.Context()), "%s: %s", c.What, p.Logged())
		w.Logf("%s: ended after %d kills", c.What, kills)
		return
	}
}

// Turns that wait for a person, for a tool and for a deadline go on after the agent was moved, saved and restored by processes that
// were killed again and again. Nothing that has settled is called once more.
func TestOpenTurnsEndAfterRepartitionBackupAndRestore(t *testing.T) {
	t.Parallel()
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		l := &live{
			world: newEmptyWorld(t, testbroker.Start(t), testbroker.Agent()), guarantee: guarantee, models: map[string]int{},
			tokens: map[string]string{},
		}
		a, stop := l.run(0)
		l.say(a, "s-gate", "pay")
		l.say(a, "s-slow", "slow")
		l.say(a, "s-late", "slow")
		l.say(a, "s-done", "hello")
		l.answered("s-done", 1)
		require.Eventually(t, func() bool { return l.token("s-slow") != "" && l.token("s-late") != "" }, wait, 20*time.Millisecond)
		code, _ := l.ask(a, http.MethodGet, "/api/gates?session_id=s-gate&status=pending&wait=50s", "", "")
		require.Equal(t, http.StatusOK, code)
		stop()
		partitions := len(l.records(l.cfg.Catalog.Table()))
		l.refuses(a, int32(partitions+4))
		l.throughKills(child{What: "repartition", To: int32(partitions + 4)})
		require.Len(t, l.records(l.cfg.Catalog.Table()), partitions+4)

		a, stop = l.run(0)
		_, list := l.ask(a, http.MethodGet, "/api/gates?session_id=s-gate&status=pending&wait=50s", "", "")
		var gates struct {
			Gates []struct {
				ID   string `json:"gate_id"`
				Args string `json:"args_sha256"`
			} `json:"gates"`
		}
		require.NoError(t, json.Unmarshal([]byte(list), &gates))
		require.Len(t, gates.Gates, 1, list)
		code, answer := l.ask(a, http.MethodPost, "/api/gates/"+gates.Gates[0].ID+"/decision?wait=50s",
			`{"verdict":"approve","args_sha256":"`+gates.Gates[0].Args+`"}`, "")
		require.Equal(t, http.StatusOK, code, answer)
		code, answer = l.ask(a, http.MethodPost, "/api/tools/response", `{"content":"late but here"}`, l.token("s-slow"))
		require.Equal(t, http.StatusAccepted, code, answer)
		l.say(a, "s-done", "hello")
		for session, n := range map[string]int{"s-gate": 1, "s-slow": 1, "s-done": 2} {
			l.answered(session, n)
		}
		stop()

		dir := filepath.Join(t.TempDir(), "backup")
		l.throughKills(child{What: "backup", Dir: dir})
		if testbroker.Embedded {
			l.world = l.elsewhere()
		} else {
			l.dropTopics()
		}
		l.throughKills(child{What: "restore", Dir: dir})
		_, stop = l.run(10 * time.Minute) // the deadline of the open call has passed
		for session, n := range map[string]int{"s-gate": 1, "s-slow": 1, "s-done": 2, "s-late": 1} {
			l.answered(session, n)
		}
		stop()
		require.Equal(t, 1, l.paid)
		require.Len(t, l.models, 8)
		for step, calls := range l.models {
			require.Equal(t, 1, calls, step)
		}
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}
