package crewhttp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/auth"
)

// A page can send a form or plain text to any origin without asking the door first.
func TestBodiesThatPagesSendWithoutAskingAreRefused(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		require.Equal(t, 415, r.do("POST", "/api/agents/a/input", `{"text":"x"}`, "Content-Type", kind).status, kind)
		require.Equal(t, 415, r.do("POST", "/api/agents/a/restart", "", "Content-Type", kind).status, kind)
	}
	require.Empty(t, r.sent.all())
	require.Equal(t, 202, r.do("POST", "/api/agents/a/restart", "").status, "a request without a body needs no type")
}

func TestPagesOfOtherOriginsCannotReadAnOpenDoor(t *testing.T) {
	r := newRig(t)
	a := r.do("GET", "/api/agents", "", "Origin", "https://evil.example")
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	a = r.do("OPTIONS", "/api/agents", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
}

// A name that a page has made to resolve to this machine is not one of the door.
func TestOpenDoorOfThisMachineChecksTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		door auth.Door
		host string
		want int
	}{
		"name of a page":             {host: "evil.example:8002", want: 403},
		"name that begins like it":   {host: "localhost.evil.example", want: 403},
		"other address":              {host: "192.0.2.1", want: 403},
		"localhost":                  {host: "LocalHost.:8002", want: 200},
		"address":                    {host: "127.0.0.1:8002", want: 200},
		"address of version 6":       {host: "[::1]:8002", want: 200},
		"named":                      {door: auth.Door{Hosts: []string{"crew.example"}}, host: "crew.example:80", want: 200},
		"not named":                  {door: auth.Door{Hosts: []string{"crew.example"}}, host: "localhost", want: 403},
		"authenticated":              {door: auth.Door{Authenticate: callers}, host: "crew.example", want: 200},
		"authenticated, and named":   {door: auth.Door{Authenticate: callers, Hosts: []string{"::1"}}, host: "[::1]", want: 200},
		"authenticated, other named": {door: auth.Door{Authenticate: callers, Hosts: []string{"crew.example"}}, host: "evil.example", want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(own *Config) { own.Authenticate, own.Hosts = c.door.Authenticate, c.door.Hosts })
			headers := []string{"Host", c.host, "Origin", "http://" + c.host, "Authorization", "Bearer mira.all.all"}
			a := r.do("GET", "/api/agents", "", headers...)
			require.Equal(t, c.want, a.status, a.body)
			b, response, err := r.dial("/ws", headers...)
			if c.want == 200 {
				require.NoError(t, err)
				b.next("init")
				return
			}
			require.Error(t, err)
			require.Equal(t, c.want, response.StatusCode)
		})
	}
}
