package crewhttp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

func TestSecretsAreReplaced(t *testing.T) {
	token := strings.Repeat("aB3", 14)
	for _, c := range []struct{ text, want string }{
		{"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- ok", redacted + " ok"},
		{"x -----BEGIN PRIVATE KEY-----\nMII cut", "x " + redacted},
		{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig_na-ture.", "jwt " + redacted + "."},
		{"sk-" + token, redacted},
		{"sk-ant-api03-" + token, redacted},
		{"ghp_" + token, redacted},
		{"github_pat_" + token, redacted},
		{"xoxb-1234567890-abc", redacted},
		{"AKIAIOSFODNN7EXAMPLE", redacted},
		{"AIza" + token, redacted},
		{"npm_" + token, redacted},
		{"Authorization: Bearer " + token, "Authorization: Bearer " + redacted},
		{"postgres://app:s3cret@db:5432/x", "postgres://app:" + redacted + "@db:5432/x"},
		{"export GITHUB_TOKEN=abcdef12345 next", "export GITHUB_TOKEN=" + redacted + " next"},
		{`DB_PASSWORD="hunter2hunter2"`, `DB_PASSWORD="` + redacted + `"`},
		{`{"password": "hunter2"}`, `{"password": "` + redacted + `"}`},
		{"api_key: abcdef", "api_key: " + redacted},
		// No secrets.
		{"the task is done, see https://example.com/a:b and risk-assessment", "the task is done, see https://example.com/a:b and risk-assessment"},
		{"5f0c2b1a-77aa-4c1d-8e22-0123456789ab", "5f0c2b1a-77aa-4c1d-8e22-0123456789ab"},
		{"the key of the matter; a token ring", "the key of the matter; a token ring"},
	} {
		require.Equal(t, c.want, Redact(c.text), c.text)
		require.Equal(t, c.want, Redact(Redact(c.text)), "again: %s", c.text)
	}
}

func TestSecretsInTheValuesOfEventsAreReplaced(t *testing.T) {
	got := string(redactJSON(topics.Raw(`{"password":"x","n":1.10,"list":["A_KEY=secret1",{"t":"-----BEGIN PRIVATE KEY-----\nM"}],"z":null}`)))
	require.Equal(t, `{"password":"x","n":1.10,"list":["A_KEY=`+redacted+`",{"t":"`+redacted+`"}],"z":null}`, got)
	require.Equal(t, "null", string(redactJSON(topics.Raw(`{"password":"A_KEY=secret1`))), "a value that cannot be read is withheld")
	require.JSONEq(t, `{"a":"K_KEY=`+redacted+`"}`, string(redactJSON(topics.Raw(`{"a":"K_K\u0045Y=secret1"}`))))
}

func TestPermissionRequestsAreShownAsTheyAre(t *testing.T) {
	r := newRig(t)
	r.agent("a", "c", "")
	b, _ := r.open()
	r.event(askedEvent, "agent/a", "c", "", `{"agentId":"a","request":{"id":"g","arguments":{"command":"A_KEY=secret1 run"}}}`)
	r.event("agent:message_sent", "agent/a", "c", "", `{"agentId":"a","content":"A_KEY=secret1 run"}`)
	require.Contains(t, b.next(askedEvent).raw, "secret1")
	require.NotContains(t, b.next("agent:message_sent").raw, "secret1")
}
