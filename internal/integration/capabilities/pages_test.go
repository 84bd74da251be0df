package capabilities

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/webchat"
	"github.com/turntable-streams/turntable/processors/crew/crewhttp"
	"github.com/turntable-streams/turntable/processors/delegation/delegationhttp"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/peer"
	"github.com/turntable-streams/turntable/processors/peer/peerhttp"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// nothing is a publisher that drops all records.
type nothing struct{}

func (nothing) Publish(context.Context, ...processors.Outbound) error { return nil }

// siteDoor is a door, and a request to it that a page would like to make.
type siteDoor struct {
	handler      http.Handler
	method, path string
	upgrade      bool // of a WebSocket
	named        bool // callers must be authenticated, so the door has any host name
}

const pageOfOurs = "https://pages.example"

// siteDoors returns every door, with or without authentication, for pages of its own host and of pageOfOurs.
func siteDoors(t *testing.T, authenticated bool) map[string]siteDoor {
	known := func(*http.Request) (auth.Caller, error) { return auth.Caller{UserID: "victim"}, nil } // as if by a cookie
	to := nothing{}
	must := func(h http.Handler, err error) http.Handler {
		require.NoError(t, err)
		return h
	}
	door := auth.Door{Origins: []string{pageOfOurs}}
	if authenticated {
		door.Authenticate = known
	}
	gateIndex, err := gatehttp.NewIndex("pilot", gatehttp.Config{})
	require.NoError(t, err)
	delegationIndex, err := delegationhttp.NewIndex("pilot", delegationhttp.Config{})
	require.NoError(t, err)
	crewIndex, err := crewhttp.NewIndex("pilot", crewhttp.Config{})
	require.NoError(t, err)
	replies, err := peerhttp.NewReplies("pilot", peerhttp.Config{})
	require.NoError(t, err)
	agent, err := invoke.NewBuffered(invoke.AgentFunc(func(context.Context, invoke.Request) (invoke.Stream, error) {
		return nil, io.EOF
	}), invoke.BufferConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = agent.Close() })
	site, err := webchat.New(webchat.Config{Account: "site", Authenticate: known, Origins: []string{pageOfOurs}},
		adapter.ReceiverFunc(func(context.Context, adapter.Inbound) error { return nil }))
	require.NoError(t, err)
	t.Cleanup(site.Close)
	chats := must(turnhttp.New("pilot", to, turnhttp.Config{Door: door}))
	gate := must(gatehttp.New(gateIndex, to, gatehttp.Config{Door: door}))
	board := must(crewhttp.New(crewIndex, to, crewhttp.Config{Door: door}))
	peer := must(peerhttp.New(replies, to, func() *peer.Settings { return &peer.Settings{} }, peerhttp.Config{Door: door, OpenProxy: !authenticated}))
	return map[string]siteDoor{
		"chat":        {chats, "POST", turnhttp.ChatPath, false, authenticated},
		"callback":    {chats, "POST", turnhttp.ToolResponsePath, false, true},
		"gate":        {gate, "POST", gatehttp.GatesPath + "/g/decision", false, authenticated},
		"gates":       {gate, "GET", gatehttp.GatesPath, false, authenticated},
		"grant":       {gate, "DELETE", gatehttp.GrantsPath + "/g", false, authenticated},
		"invoke":      {must(invoke.New(agent, invoke.Config{Door: door})), "POST", "/invoke", false, authenticated},
		"delegations": {must(delegationhttp.New(delegationIndex, delegationhttp.Config{Door: door})), "GET", delegationhttp.DelegationsPath, false, authenticated},
		"crew":        {board, "POST", "/api/agents/a/input", false, authenticated},
		"crew list":   {board, "GET", "/api/agents", false, authenticated},
		"crew socket": {board, "GET", crewhttp.SocketPath, true, authenticated},
		"websocket":   {must(websocket.New("pilot", websocket.Config{Door: door})), "GET", "/", true, authenticated},
		"web chat":    {site, "GET", "/", true, true},
		"peer":        {peer, "POST", peerhttp.DelegatePath, false, true},
		"peer task":   {peer, "DELETE", peerhttp.TasksPath + "t", false, true},
		"peer proxy":  {peer, "POST", peerhttp.ProxyPath, false, authenticated},
	}
}

// request sends a request of a page on a connection of its own.
func (d siteDoor) request(t *testing.T, address string, headers ...string) int {
	t.Helper()
	body := ""
	if d.method == http.MethodPost {
		body = `{"session_id":"s","content":"pay"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), d.method, "http://"+address+d.path, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if d.upgrade {
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		} {
			r.Header.Set(name, value)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	require.NoError(t, r.Write(c))
	answer, err := http.ReadResponse(bufio.NewReader(c), r)
	require.NoError(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestNoDoorObeysAPageOfAnotherSite(t *testing.T) {
	for mode, authenticated := range map[string]bool{"open": false, "authenticated": true} {
		for name, d := range siteDoors(t, authenticated) {
			t.Run(mode+" "+name, func(t *testing.T) {
				server := httptest.NewServer(d.handler)
				t.Cleanup(server.Close)
				address := strings.TrimPrefix(server.URL, "http://")
				_, port, err := net.SplitHostPort(address)
				require.NoError(t, err)
				if d.method != http.MethodGet || d.upgrade && name != "crew socket" { // that one refuses all until its index is ready
					attacks := [][]string{
						{"Origin", "https://evil.example"},
						{"Origin", "null"},
						{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
						{"Origin", "http://" + address + ".evil.example"},
					}
					if !d.upgrade { // browsers name the origin of a socket
						attacks = append(attacks, []string{"Sec-Fetch-Site", "cross-site"}, []string{"Sec-Fetch-Site", "same-site"},
							[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"})
					}
					for _, headers := range attacks {
						require.Equal(t, http.StatusForbidden, d.request(t, address, headers...), headers)
					}
					if name != "callback" { // no page has a token of a call
						require.NotEqual(t, http.StatusForbidden, d.request(t, address, "Origin", pageOfOurs, "Sec-Fetch-Site", "cross-site"))
					}
				}
				for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example"} {
					got := d.request(t, address, "Host", host, "Origin", "http://"+host, "Sec-Fetch-Site", "same-origin")
					require.Equal(t, !d.named, got == http.StatusForbidden, "%s: %d", host, got)
				}
				for _, host := range []string{"localhost:" + port, "127.0.0.1", "[::1]:" + port} {
					require.NotEqual(t, http.StatusForbidden, d.request(t, address, "Host", host, "Origin", "http://"+host), host)
				}
				require.NotEqual(t, http.StatusForbidden, d.request(t, address, "Host", "pages.example", "Origin", "http://pages.example"))
			})
		}
	}
}
