package agents

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/program"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
)

// minimal is the program of the README with the API of a model, which each test has of its own.
type minimal struct {
	binary  string
	brokers string // empty: the program's own
	api     *httptest.Server
}

func newMinimal(t *testing.T, model http.HandlerFunc, brokers ...string) *minimal {
	t.Helper()
	m := &minimal{filepath.Join(t.TempDir(), "minimal"), strings.Join(brokers, ","), httptest.NewServer(model)}
	t.Cleanup(m.api.Close)
	require.NoError(t, program.Build(filepath.Join("..", "..", ".."), filepath.Dir(m.binary), "minimal"))
	return m
}

func (m *minimal) start(ctx context.Context, t *testing.T) *program.Service {
	t.Helper()
	addr := program.Address(t)
	c := exec.CommandContext(ctx, m.binary)
	c.Env = []string{"LISTEN=" + addr, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + m.api.URL, "KAFKA_BOOTSTRAP_SERVERS=" + m.brokers}
	return program.Serve(t, c, addr)
}

// question asks the program in a session. The key of the request is that of the session, so that it can be asked again.
func question(ctx context.Context, to *program.Service, session string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL+"/invoke", strings.NewReader(fmt.Sprintf(
		`{"session_id":%q,"data":{"inputs":{"messages":[{"role":"user","content":"Where is order 7?"}]}}}`, session)))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", session)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// The program of the README answers a question with its tool, on a broker of its own.
func TestMinimalProgramAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	agent := newMinimal(t, program.Claude).start(ctx, t)
	body, err := question(ctx, agent, "s-1")
	require.NoError(t, err)
	require.Contains(t, body, "Order 7 is on its way.")
	require.Contains(t, agent.Errs.String(), "set KAFKA_BOOTSTRAP_SERVERS")
	agent.End(t, stop)
}

// The program is killed when the call of its tool is written, or while the model answers with the result. The next start answers the
// same request, and pays for the first step no second time.
func TestMinimalProgramContinuesAfterAKill(t *testing.T) {
	for _, when := range []string{"in the tool call", "in the second step"} {
		t.Run(when, func(t *testing.T) {
			brokers, session := testbroker.Start(t), testbroker.Agent()
			var first, second atomic.Int32
			reached, release := make(chan struct{}), make(chan struct{})
			m := newMinimal(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if !bytes.Contains(body, []byte("on its way")) {
					first.Add(1)
				} else if second.Add(1) == 1 {
					close(reached)
					<-release
				}
				program.Claude(w, r)
			}, brokers...)
			ctx, stop := context.WithCancel(t.Context())
			killed := m.start(ctx, t)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = question(ctx, killed, session) // the kill breaks the connection
			}()
			if when == "in the tool call" {
				called(ctx, t, brokers, session)
			} else {
				<-reached
			}
			killed.Kill(t)
			<-ended
			close(release)

			next := m.start(ctx, t)
			body, err := question(ctx, next, session)
			require.NoError(t, err, next.Errs)
			require.Contains(t, body, "Order 7 is on its way.")
			require.EqualValues(t, 1, first.Load(), "the answer that was written is not paid again")
			next.End(t, stop)
		})
	}
}

// called returns when the agent has written a call of the session.
func called(ctx context.Context, t *testing.T, brokers []string, session string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("support-tool-use"))
	require.NoError(t, err)
	defer c.Close()
	for {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		for _, r := range fetches.Records() {
			if string(r.Key) == session {
				return
			}
		}
	}
}
