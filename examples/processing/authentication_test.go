package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors/embedded"
)

// The commands of the README are run as they are written, except for the port.
func TestREADMEShowsHowToAuthenticate(t *testing.T) {
	for _, tool := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	for _, section := range []string{"API keys", "JWT", "Client certificates"} {
		t.Run(section, func(t *testing.T) { runSection(t, section) })
	}
}

func runSection(t *testing.T, section string) {
	blocks := blocksOf(t, section)
	require.Len(t, blocks, 3)
	broker, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	defer broker.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	sh := &shell{t: t, ctx: ctx, dir: t.TempDir()}
	sh.prepare(blocks[0])

	env := append(strings.Fields(blocks[1]), "KAFKA_BOOTSTRAP_SERVERS="+strings.Join(broker.Addrs(), ","),
		"PORT=127.0.0.1:0", "WS_PORT=127.0.0.1:0", "TOOL_AGG_PUNCTUATE_INTERVAL_MS=20")
	for i, e := range env {
		// The child's working directory is that of the test.
		if name, file, _ := strings.Cut(e, "="); strings.HasSuffix(name, "_FILE") || name == "AUTH_JWKS" {
			env[i] = name + "=" + filepath.Join(sh.dir, file)
		}
	}
	p := launch(ctx, t, env...)
	lines := bufio.NewScanner(p.logs)
	screen := until(t, lines, "websocket").Addr
	doors := until(t, lines, "doors").Addr
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(p.logs)
		rest <- string(text)
	}()

	asked := 0
	for command := range strings.SplitSeq(strings.TrimPrefix(blocks[2], "$ "), "\n$ ") {
		command, want, _ := strings.Cut(strings.TrimSpace(command), "\n")
		require.Contains(t, command, "127.0.0.1:8080")
		require.Equal(t, want, sh.run(strings.ReplaceAll(command, "127.0.0.1:8080", doors)), command)
		asked++
	}
	require.Equal(t, 3, asked)

	token := ""
	for _, e := range sh.env {
		if name, value, _ := strings.Cut(e, "="); name == "KEY" || name == "TOKEN" {
			token = value
		}
	}
	if token != "" {
		url := "ws://" + screen
		_, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"turntable"}})
		require.Error(t, err)
		require.Equal(t, 401, response.StatusCode)
		conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"turntable", "turntable.bearer." + token}})
		require.NoError(t, err)
		require.NoError(t, conn.CloseNow())
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	logs := <-rest
	require.NoError(t, p.Wait())
	require.NotContains(t, logs, "a door is open")
	if token != "" {
		require.NotContains(t, logs, token)
	}
}

// blocksOf returns the code blocks of a section of the README.
func blocksOf(t *testing.T, section string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(page), "\n### "+section+"\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n##")
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n")
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// shell runs the commands of a user.
type shell struct {
	t   *testing.T
	ctx context.Context
	dir string
	env []string // what prepare has exported
}

func (s *shell) prepare(commands string) {
	s.t.Helper()
	exported := s.run(commands + "\nexec 1>&3\nenv")
	for line := range strings.Lines(exported) {
		if strings.HasPrefix(line, "KEY=") || strings.HasPrefix(line, "TOKEN=") {
			s.env = append(s.env, strings.TrimSpace(line))
		}
	}
}

func (s *shell) run(commands string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, "sh", "-ec", "exec 3>&1\n"+commands)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	out, err := cmd.Output()
	require.NoError(s.t, err, commands)
	return strings.TrimSpace(string(out))
}

func TestAddressIsOnLoopbackUnlessAnInterfaceIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0": "127.0.0.1:0", "0.0.0.0:8080": "0.0.0.0:8080",
		"[::]:8080": "[::]:8080", "10.0.0.1:80": "10.0.0.1:80",
	} {
		t.Setenv("PORT", text)
		got, err := address("PORT")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestWrongSettingsOfAuthenticationAreNamedWithoutTheirValues(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	keys := filepath.Join(dir, "keys")
	require.NoError(t, os.WriteFile(keys, []byte("tt_abcd_s3cret"), 0o600))
	jwt := []string{"AUTH_JWT_ISSUER=i", "AUTH_JWT_AUDIENCE=a"}
	for _, c := range []struct {
		want string
		env  []string
	}{
		{"AUTH_KEYS_FILE", []string{"AUTH_KEYS_FILE=/absent/s3cret"}},
		{"AUTH_KEYS_FILE: apikey", []string{"AUTH_KEYS_FILE=" + keys}},
		{"AUTH_JWKS: the file", append(jwt, "AUTH_JWKS=/absent/s3cret")},
		{"AUTH_JWKS: jwt", append(jwt, "AUTH_JWKS="+empty)},
		{"AUTH_JWKS: jwt", append(jwt, "AUTH_JWKS=http://id.example/s3cret")},
		{"AUTH_JWKS requires AUTH_JWT_ISSUER", []string{"AUTH_JWKS=" + empty}},
		{"AUTH_JWT_AUDIENCE is set and AUTH_JWKS is not", []string{"AUTH_JWT_AUDIENCE=s3cret"}},
		{"AUTH_JWT_ALGORITHMS", append(jwt, "AUTH_JWKS=https://id.example", "AUTH_JWT_ALGORITHMS=RS256,HS256")},
		{"AUTH_CLIENT_CA_FILE requires", []string{"AUTH_CLIENT_CA_FILE=/absent/s3cret"}},
		{"TLS_KEY_FILE: want both", []string{"TLS_CERTIFICATE_FILE=" + empty}},
		{"TLS_KEY_FILE: the file", []string{"TLS_CERTIFICATE_FILE=" + empty, "TLS_KEY_FILE=/absent/s3cret"}},
		{"TLS_CERTIFICATE_FILE", []string{"TLS_CERTIFICATE_FILE=" + empty, "TLS_KEY_FILE=" + keys}},
		{"AUTH_SESSIONS", []string{"AUTH_SESSIONS=*{user}s3cret"}},
		{"AUTH_RIGHTS", []string{"AUTH_RIGHTS=read,s3cret"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=s3cret.example"}},
		{"TRUSTED_PROXIES", []string{"TRUSTED_PROXIES=10.0.0.0/8,s3cret"}},
		{"TRUSTED_PROXIES", []string{"TRUSTED_PROXIES=10.0.0.1"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=*"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://chat.example/s3cret"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://chat.example/"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://s3cret@chat.example"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://chat.example,,https://b.example"}},
		{"ALLOWED_ORIGINS", []string{"ALLOWED_ORIGINS=https://Chat.example"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			for _, e := range c.env {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			_, err := readAccess(zap.NewNop())
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestOpenDoorsAreNamedInWarnings(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	warnings := func(s settings) (lines []string) {
		s.warn(zap.New(core))
		for _, e := range logs.TakeAll() {
			first, _, _ := strings.Cut(e.Message, ":")
			lines = append(lines, first+" "+e.ContextMap()["door"].(string)+" "+e.ContextMap()["variable"].(string))
		}
		return lines
	}
	require.Empty(t, warnings(settings{}))
	s := settings{doors: "127.0.0.1:1", websocket: "0.0.0.0:2", health: "127.0.0.1:3"}
	require.Equal(t, []string{"a door is open chat PORT", "a door is open websocket WS_PORT"}, warnings(s))

	t.Setenv("ALLOWED_ORIGINS", "https://chat.example, http://localhost:3000")
	open, err := readAccess(zap.NewNop())
	require.NoError(t, err)
	(&settings{doors: "127.0.0.1:1", access: open}).warn(zap.New(core))
	require.Equal(t, []any{"https://chat.example", "http://localhost:3000"}, logs.TakeAll()[0].ContextMap()["also pages of"])

	t.Setenv("AUTH_KEYS_FILE", filepath.Join(t.TempDir(), "keys"))
	require.NoError(t, os.WriteFile(os.Getenv("AUTH_KEYS_FILE"), nil, 0o600))
	s.access, err = readAccess(zap.NewNop())
	require.NoError(t, err)
	s.health = "[::]:3"
	require.Equal(t, []string{
		"a door receives credentials in plain text websocket WS_PORT", "the health check is open health HEALTH_ADDR",
	}, warnings(s))
}
