package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform/platformtest"
	"github.com/turntable-streams/turntable/topics"
)

const two = `{"joined":{"@ann:example.org":{},"@bot:example.org":{}}}`

func TestSyncStartsAtThePresentAndGoesOnFromItsPosition(t *testing.T) {
	v := newVendor(t)
	v.members["%21r1:example.org"] = two
	v.syncs = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 1:
			_, _ = io.WriteString(w, batch("s1", room("!r1:example.org", message("old", ""))))
		case 2:
			_, _ = io.WriteString(w, batch("s2", room("!r2:example.org", message("c", `,"m.mentions":{"user_ids":["@bot:example.org"]},"m.relates_to":{"rel_type":"m.thread","event_id":"$root","is_falling_back":true,"m.in_reply_to":{"event_id":"$x"}}`))+
				","+room("!r1:example.org", message("a", ""), message("b", ""))))
		}
		return n < 3
	}
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	platformtest.Start(t, a, i)
	for range 3 {
		<-i.Came
	}
	require.Eventually(t, func() bool { return len(v.polled()) == 3 }, platformtest.WaitFor, platformtest.Tick)
	require.Equal(t, []string{"/0", "s1/30000", "s2/30000"}, v.polled())
	at := time.UnixMilli(1_700_000_000_000).UTC()
	ann := topics.Origin{Channel: "matrix", Account: "main", Recipient: "!r1:example.org", MessageID: "$a", User: "@ann:example.org", UserName: "@ann:example.org"}
	inB, inC := ann, ann
	inB.MessageID = "$b"
	inC.Recipient, inC.MessageID, inC.Thread, inC.Group = "!r2:example.org", "$c", "$root", true
	require.Equal(t, []adapter.Inbound{
		{Event: "$a", Text: "text of a", At: at, Origin: ann},
		{Event: "$b", Text: "text of b", At: at, Origin: inB},
		{Event: "$c", Text: "text of c", At: at, Origin: inC, Mentioned: true},
	}, i.All())
	require.Equal(t, 2, v.lookups, "members are looked up once for a while")
}

func TestSyncSurvivesFailuresAndRepeatsWhatWasNotHandled(t *testing.T) {
	v := newVendor(t)
	v.syncs = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 1:
			_, _ = io.WriteString(w, batch("s1", ""))
		case 2: // the connection is cut in the middle of the response
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"next_batch":`)
		case 3:
			platformtest.Answer(w, http.StatusTooManyRequests, `{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":3000}`)
		case 4:
			platformtest.Answer(w, http.StatusUnauthorized, `{"errcode":"M_UNKNOWN_TOKEN","error":"s3cret"}`)
		case 5:
			_, _ = io.WriteString(w, `{"rooms":{}}`)
		case 6, 7:
			_, _ = io.WriteString(w, batch("s2", room("!r1:example.org", `7`, message("a", ""), message("b", ""))))
		}
		return n < 8
	}
	a, logs := newAdapter(t, v.URL)
	i := platformtest.NewInbox(1)
	platformtest.Start(t, a, i)
	<-i.Came
	<-i.Came
	require.Eventually(t, func() bool { return len(v.polled()) == 8 }, platformtest.WaitFor, platformtest.Tick)
	require.Equal(t, []string{"$a", "$b"}, i.Events())
	require.Equal(t, []string{"s1/30000", "s1/30000", "s2/30000"}, v.polled()[5:])
	require.Equal(t, []any{
		"connection lost", "status 429, M_LIMIT_EXCEEDED", "status 401, M_UNKNOWN_TOKEN", "response cannot be read", "event was not handled",
	}, platformtest.Reasons(t, logs, "text of"))
}

type brokenSince struct{ load, store error }

func (b brokenSince) Load(context.Context) (string, error) { return "s1", b.load }
func (b brokenSince) Store(context.Context, string) error  { return b.store }

func TestPositionIsTheUsers(t *testing.T) {
	v := newVendor(t)
	v.syncs = func(_ int, w http.ResponseWriter) bool {
		_, _ = io.WriteString(w, batch("s2", ""))
		return true
	}
	position := NewMemory()
	require.NoError(t, position.Store(t.Context(), "s0"))
	a, _ := newAdapter(t, v.URL, func(c *Config) { c.Since = position })
	require.NoError(t, a.sync(t.Context(), platformtest.NewInbox(0)))
	got, err := position.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, "s2", got)
	for reason, broken := range map[string]brokenSince{
		"position cannot be loaded": {load: errors.New("s3cret")}, "position cannot be stored": {store: errors.New("s3cret")},
	} {
		a, _ := newAdapter(t, v.URL, func(c *Config) { c.Since = broken })
		require.Equal(t, reason, platformtest.Failure(t, a.sync(t.Context(), platformtest.NewInbox(0))).Reason)
	}
}

func TestRunStopsWhileASyncIsOpen(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	stop := platformtest.Start(t, a, platformtest.NewInbox(0))
	require.Eventually(t, func() bool { return len(v.polled()) == 1 }, platformtest.WaitFor, platformtest.Tick)
	stop()
}

func TestAddressed(t *testing.T) {
	a, _ := newAdapter(t, "https://matrix.example.org")
	for name, c := range map[string]struct {
		more, body, text string
		mentioned        bool
	}{
		"intentional":    {`"m.mentions":{"user_ids":["@bot:example.org"]}`, "Berth Bot: hello", "hello", true},
		"by ID":          {`"m.mentions":{"user_ids":["@bot:example.org"]}`, "@bot:example.org hello", "hello", true},
		"inside":         {`"m.mentions":{"user_ids":["@bot:example.org"]}`, "hello Berth Bot", "hello Berth Bot", true},
		"longer name":    {`"m.mentions":{"user_ids":["@bot:example.org"]}`, "Berth Botany", "Berth Botany", true},
		"of another":     {`"m.mentions":{"user_ids":["@eve:example.org"]}`, "@bot:example.org hello", "@bot:example.org hello", false},
		"of nobody":      {`"m.mentions":{}`, "@bot:example.org hello", "@bot:example.org hello", false},
		"older client":   {`"x":1`, "@bot:example.org: hello", "hello", true},
		"quoted message": {`"m.relates_to":{"m.in_reply_to":{"event_id":"$x"}}`, "> <@bot:example.org> hi\n> there\n\nhello", "hello", false},
	} {
		var got content
		require.NoError(t, decode(`{`+c.more+`}`, &got), name)
		got.Body = c.body
		text, mentioned := a.addressed(got)
		require.Equal(t, c.text, text, name)
		require.Equal(t, c.mentioned, mentioned, name)
	}
}

// deliver sends a transaction as a homeserver does.
func deliver(h http.Handler, method, path, authorization, body string) int {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	return platformtest.Serve(h, r).Code
}

const (
	toTxn = "/_matrix/app/v1/transactions/"
	good  = "Bearer " + hsToken
)

func TestTransactionIsHandledOnce(t *testing.T) {
	v := newVendor(t)
	v.members["%21r1:example.org"] = two
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(1)
	h, err := a.Handler(i)
	require.NoError(t, err)
	txn := `{"events":[` + message("a", "") + `,` + message("b", "") + `]}`
	require.Equal(t, 503, deliver(h, "PUT", toTxn+"1", good, txn), "the homeserver sends it again")
	require.Equal(t, 200, deliver(h, "PUT", toTxn+"1", good, txn))
	require.Equal(t, 200, deliver(h, "PUT", toTxn+"1", good, txn))
	require.Equal(t, []string{"$a", "$b"}, i.Events())
	require.False(t, i.All()[0].Origin.Group)
	require.Equal(t, 200, deliver(h, "POST", "/_matrix/app/v1/ping", good, `{}`))
}

func TestHostileTransactionsAreRefused(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	h, err := a.Handler(i)
	require.NoError(t, err)
	txn := `{"events":[` + message("a", "") + `]}`
	for name, c := range map[string]struct {
		method, path, authorization, body string
		want                              int
	}{
		"no token":       {"PUT", toTxn + "1", "", txn, 401},
		"wrong token":    {"PUT", toTxn + "1", "Bearer x", txn, 403},
		"token in query": {"PUT", toTxn + "1?access_token=" + hsToken, "", txn, 401},
		"method":         {"GET", toTxn + "1", good, "", 405},
		"huge":           {"PUT", toTxn + "1", good, strings.Repeat(" ", maxTransaction) + txn, 413},
		"not JSON":       {"PUT", toTxn + "1", good, `{`, 400},
		"long ID":        {"PUT", toTxn + strings.Repeat("1", 300), good, txn, 400},
		"elsewhere":      {"PUT", "/_matrix/app/v1/users/x", good, "", 404},
		"ping":           {"POST", "/_matrix/app/v1/ping", "", `{}`, 401},
	} {
		require.Equal(t, c.want, deliver(h, c.method, c.path, c.authorization, c.body), name)
	}
	require.Empty(t, i.All())
	off, _ := newAdapter(t, v.URL, func(c *Config) { c.HomeserverToken = "" })
	_, err = off.Handler(i)
	require.ErrorContains(t, err, "Config.HomeserverToken")
}

func TestWhatNoPersonWroteIsDropped(t *testing.T) {
	v := newVendor(t)
	a, _ := newAdapter(t, v.URL)
	i := platformtest.NewInbox(0)
	h, err := a.Handler(i)
	require.NoError(t, err)
	for n, m := range []string{
		strings.Replace(message("a", ""), "@ann:example.org", bot, 1),
		strings.Replace(message("a", ""), "m.text", "m.notice", 1),
		strings.Replace(message("a", ""), "m.room.message", "m.room.member", 1),
		strings.Replace(message("a", ""), `"text of a"`, `""`, 1),
		strings.Replace(message("a", ""), `"text of a"`, `{}`, 1),
		strings.Replace(message("a", ""), `"$a"`, `"$`+strings.Repeat("a", 600)+`"`, 1),
		message("a", `,"m.relates_to":{"rel_type":"m.replace","event_id":"$x"}`),
		`{"content":7}`, `7`, `{}`,
	} {
		require.Equal(t, 200, deliver(h, "PUT", fmt.Sprint(toTxn, n), good, `{"events":[`+m+`]}`), n)
	}
	require.Empty(t, i.All())
}

func TestRoomIsDirectOnlyIfItsMembersSaySo(t *testing.T) {
	v := newVendor(t)
	v.members["%21two:x"], v.members["%21bad:x"] = two, `7`
	v.members["%21three:x"] = `{"joined":{"@a:x":{},"@b:x":{},"@c:x":{}}}`
	a, _ := newAdapter(t, v.URL)
	for id, want := range map[string]bool{"!two:x": true, "!three:x": false, "!secret:x": false} {
		direct, err := a.isDirect(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, want, direct, id)
	}
	_, err := a.isDirect(t.Context(), "!bad:x")
	require.ErrorContains(t, err, "cannot be read")
	wrong, _ := newAdapter(t, v.URL, func(c *Config) { c.AccessToken = "another" })
	_, err = wrong.isDirect(t.Context(), "!two:x")
	require.False(t, platformtest.Failure(t, err).Final, "it is tried again: a direct message must not count as one of a group")
}

func TestLargeRoomIsRead(t *testing.T) {
	v := newVendor(t)
	var members strings.Builder
	for n := range 60_000 {
		fmt.Fprintf(&members, `,"@member%d:example.org":{}`, n)
	}
	v.members["%21large:x"] = `{"joined":{` + members.String()[1:] + `}}`
	a, _ := newAdapter(t, v.URL)
	direct, err := a.isDirect(t.Context(), "!large:x")
	require.NoError(t, err)
	require.False(t, direct)
}
