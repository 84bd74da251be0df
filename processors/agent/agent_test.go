package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/testing/leaktest"
	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, leaktest.Libraries()...) }

type order struct {
	Number int `json:"number"`
}

var find = tools.New("find_order", "Finds an order.", func(_ context.Context, o order) (string, error) {
	return fmt.Sprintf("order %d is on its way", o.Number), nil
})

// script calls the tool and says what it returned.
func script(_ context.Context, s think.Step) iter.Seq2[think.Delta, error] {
	return func(yield func(think.Delta, error) bool) {
		if *s.Input().Role != "tool" {
			_ = yield(think.Delta{Text: "Let me look."}, nil) &&
				yield(think.Delta{Call: &think.Call{ID: "c-" + s.Key, Name: "find_order", Input: topics.Raw(`{"number":7}`)}}, nil)
			return
		}
		yield(think.Delta{Text: "It is on its way."}, nil)
	}
}

// start runs an agent until the test ends.
func start(t *testing.T, a *agent.Agent) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ran)
	})
	select {
	case <-a.Ready():
	case err := <-ran:
		ran <- err
		require.NoError(t, err)
	}
}

func TestAgentAnswersOnItsOwnBroker(t *testing.T) {
	a, err := agent.New("support", agent.Config{
		Model: think.StreamFunc(script), Tools: []tools.Tool{find}, Logger: zap.NewNop(), StateDir: t.TempDir(),
	})
	require.NoError(t, err)
	start(t, a)
	answer, err := a.Ask(t.Context(), "s-1", "Where is order 7?")
	require.NoError(t, err)
	require.Equal(t, "It is on its way.", answer)

	var types []string
	for e, err := range a.Stream(t.Context(), "s-1", "And now?") {
		require.NoError(t, err)
		types = append(types, e.Type)
	}
	require.Contains(t, types, "message_delta")
	require.Contains(t, types, "tool_result")

	require.ErrorIs(t, a.Run(t.Context()), agent.ErrStarted)
}

func TestTurnWithoutAnAnswerIsAnError(t *testing.T) {
	a, err := agent.New("support", agent.Config{
		Model:  think.Func(func(context.Context, think.Step) (think.Reply, error) { return think.Reply{}, errors.New("no model") }),
		Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	start(t, a)
	_, err = a.Ask(t.Context(), "s-1", "Hello?")
	require.ErrorIs(t, err, agent.ErrTurn)
	require.ErrorContains(t, err, "gave up: no model")
}

func TestMistakesAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, c := range map[string]agent.Config{
		"Model is missing":             {},
		"Memory: Updater is missing":   {Memory: &agent.Memory{}},
		"those of tenants need Tenant": {Budgets: turn.Budgets{Tenant: turn.Budget{Total: 1}}},
		"Deliver: Services has none":   {Deliver: &agent.Deliver{}},
		"Channels: Accounts has none":  {Channels: &agent.Channels{}},
		"account 0 has no adapter":     {Channels: &agent.Channels{Accounts: []channel.AccountAdapter{{}}}},
		"two accounts are b/main": {Channels: &agent.Channels{Accounts: []channel.AccountAdapter{
			{Name: "main", Adapter: doorBoard{newBoard("b")}}, {Name: "main", Adapter: doorBoard{newBoard("b")}},
		}}},
		`Listen: "8080" is not host:port`:                            {Listen: "8080"},
		"other machines can reach 0.0.0.0:8080":                      {Listen: "0.0.0.0:8080"},
		"other machines can reach :8080":                             {Listen: ":8080"},
		"Parts has no Doors":                                         {Listen: "127.0.0.1:0", Parts: agent.Groups},
		"Parts: unknown part":                                        {Parts: 128},
		`Tools[1]: there is another tool with the name "find_order"`: {Tools: []tools.Tool{find, find}},
		`Tools[0]: there is another tool with the name "delegate_to_peer"`: {
			Tools: []tools.Tool{{Name: "delegate_to_peer", Func: find.Func}}, Peers: func() *peer.Settings { return new(peer.Settings) },
		},
		"Tools[0]: no name or no function": {Tools: []tools.Tool{{}}},
		"StateDir: ":                       {StateDir: file},
		"CallbackSecret":                   {CallbackSecret: "short", Tools: []tools.Tool{find}},
		"kafka:9092":                       {Brokers: []string{"http://kafka:9092"}},
		"policy":                           {Approval: &approval.Policy{Default: "maybe"}},
	} {
		t.Run(want, func(t *testing.T) {
			if want != "Model is missing" {
				c.Model = think.StreamFunc(script)
			}
			_, err := agent.New("support", c)
			require.ErrorIs(t, err, agent.ErrConfig)
			require.ErrorContains(t, err, want)
		})
	}
	_, err := agent.New("no agent", agent.Config{Model: think.StreamFunc(script)})
	require.ErrorIs(t, err, agent.ErrConfig)
}

func TestHealthOfAStartSaysWhatItWaitsFor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	_, err = agent.New("harbor", agent.Config{Model: think.StreamFunc(script), Listen: address})
	require.NoError(t, err)
	taken := must(agent.New("harbor", agent.Config{Model: think.StreamFunc(script), Listen: address, Brokers: []string{"127.0.0.1:1"}}))
	require.ErrorIs(t, taken.Run(t.Context()), syscall.EADDRINUSE, "it is told before the brokers are asked")
	require.NoError(t, l.Close())

	waiting := must(agent.New("harbor", agent.Config{Model: think.StreamFunc(script), Listen: address, Brokers: []string{"127.0.0.1:1"}}))
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- waiting.Run(ctx) }()
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, ""
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(body)
	}
	require.Eventually(t, func() bool {
		status, body := get(agent.HealthPath)
		return status == http.StatusServiceUnavailable && strings.Contains(body, "nothing listens there") && strings.Contains(body, `"ready":false`)
	}, waitLimit, 10*time.Millisecond)
	status, body := get(agent.InvokePath)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "starting")
	stop()
	require.NoError(t, <-ran)
	http.DefaultClient.CloseIdleConnections()
}

func TestOpenDoorsAreToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		agent.Config
		warnings int
	}{
		"open":                 {agent.Config{Listen: "127.0.0.1:0"}, 1},
		"open, which is meant": {agent.Config{Listen: "127.0.0.1:0", Open: true}, 0},
		"no doors":             {agent.Config{}, 0},
	} {
		core, logged := observer.New(zap.WarnLevel)
		c.Model, c.Logger = think.StreamFunc(script), zap.New(core)
		start(t, must(agent.New("harbor", c.Config)))
		require.Equal(t, c.warnings, logged.FilterMessageSnippet("open").Len(), name)
		require.Equal(t, c.warnings+1, logged.Len(), "%s: the other one is that of the broker: %v", name, logged.All())
	}
}

func TestAskOfAnAgentThatDoesNotRunSaysSo(t *testing.T) {
	a := must(agent.New("harbor", agent.Config{Model: think.StreamFunc(script)}))
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	_, err := a.Ask(ctx, "s", "hello")
	require.ErrorIs(t, err, agent.ErrNotRunning)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

const waitLimit = time.Minute

func must(a *agent.Agent, err error) *agent.Agent {
	if err != nil {
		panic(err)
	}
	return a
}
