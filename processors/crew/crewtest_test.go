package crew_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	acp "github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// withSDKs runs a test with the agents of both SDKs.
func withSDKs(t *testing.T, test func(t *testing.T, command func(crewtest.Script) []string)) {
	t.Run("go", func(t *testing.T) {
		test(t, func(s crewtest.Script) []string {
			argv, err := crewtest.Command(t.TempDir(), s)
			require.NoError(t, err)
			return argv
		})
	})
	t.Run("typescript", func(t *testing.T) {
		a, err := crewtest.InstallTypeScript(t.Context(), "")
		if errors.Is(err, crewtest.ErrNoNode) {
			t.Skipf("the agent on the TypeScript SDK of ACP is not tested: %v", err)
		}
		require.NoError(t, err)
		test(t, func(s crewtest.Script) []string {
			argv, err := a.Command(t.TempDir(), s)
			require.NoError(t, err)
			return argv
		})
	})
}

// client is a client of the Go SDK that selects the option with the ID answer.
type client struct {
	acp.Client
	answer string
	mu     sync.Mutex
	said   strings.Builder
}

func (c *client) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := n.Update.AgentMessageChunk; m != nil && m.Content.Text != nil {
		c.said.WriteString(m.Content.Text.Text)
	}
	return nil
}

func (c *client) RequestPermission(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(c.answer))}, nil
}

func TestTheAgentsDoWhatTheScriptSays(t *testing.T) {
	withSDKs(t, func(t *testing.T, command func(crewtest.Script) []string) {
		dir := t.TempDir()
		argv := command(crewtest.Script{Load: true, Store: dir, Rules: []crewtest.Rule{
			{Match: `^say (\w+) "`, Steps: []crewtest.Step{{Text: `{{1}}: "{{prompt}}"`, Split: 3}}},
			{Match: "^ask", Stop: "refusal", Steps: []crewtest.Step{{Ask: &crewtest.Ask{
				Allowed: []crewtest.Step{{Text: "yes"}}, Rejected: []crewtest.Step{{Text: "no"}},
			}}}},
			{Match: "^fail", Error: "cannot"},
		}})
		c := &client{answer: "reject_once"}
		conn := connect(t, c, argv)
		_, err := conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1})
		require.NoError(t, err)
		s, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: dir, McpServers: []acp.McpServer{}})
		require.NoError(t, err)
		prompt := func(text string) (acp.PromptResponse, error) {
			return conn.Prompt(t.Context(), acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		}
		r, err := prompt(`say Ann "ä"`)
		require.NoError(t, err)
		require.Equal(t, acp.StopReasonEndTurn, r.StopReason)
		r, err = prompt("ask")
		require.NoError(t, err)
		require.Equal(t, acp.StopReasonRefusal, r.StopReason)
		_, err = prompt("fail")
		require.ErrorContains(t, err, "cannot")

		again := &client{}
		conn = connect(t, again, argv)
		_, err = conn.Initialize(t.Context(), acp.InitializeRequest{ProtocolVersion: 1})
		require.NoError(t, err)
		_, err = conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: s.SessionId, Cwd: dir, McpServers: []acp.McpServer{}})
		require.NoError(t, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		again.mu.Lock()
		defer again.mu.Unlock()
		require.Equal(t, c.said.String(), again.said.String())
		require.Equal(t, `Ann: "say Ann "ä""no`, c.said.String())
	})
}

func connect(t *testing.T, c *client, argv []string) *acp.ClientSideConnection {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	conn := acp.NewClientSideConnection(c, in, out)
	t.Cleanup(func() {
		_ = in.Close()
		<-conn.Done()
		require.NoError(t, cmd.Wait())
	})
	return conn
}
