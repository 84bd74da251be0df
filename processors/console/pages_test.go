package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/agent"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/console"
)

func TestGateIsSeenAndDecided(t *testing.T) {
	f := newField(t)
	boss := f.as("boss")
	f.say("s-1", "pay 1200")
	path, id := f.gateOf("s-1")

	require.Contains(t, boss.page("/console/"), "1 open gate")
	page := boss.page(path)
	require.NotContains(t, page, "1200", "the request is hidden until it is asked for")
	require.NotContains(t, page, `value="approve"`, "what was not seen is not approved")
	status, _, page := boss.post("/console/gate/decide", url.Values{"session": {"s-1"}, "gate": {id}, "verdict": {"approve"}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "you have not seen the request")

	page = boss.page(path + "&show=request")
	require.Contains(t, page, "&#34;cents&#34;: 1200")
	form := url.Values{"session": {"s-1"}, "gate": {id}, "args_sha256": {value(t, page, "args_sha256")}, "verdict": {"approve"}, "reason": {"fine"}}
	_, at, page := boss.post("/console/gate/decide", form)
	require.Contains(t, at, "/console/gate?", "a reload repeats nothing")
	require.Contains(t, page, "Your decision counts.")
	require.Contains(t, page, "<strong>approved</strong> (human) by <bdi>boss</bdi>")
	require.Contains(t, boss.page(at), "Your decision counts.", "a refresh keeps the outcome")

	_, _, page = f.as("decider").post("/console/gate/decide", url.Values{"session": {"s-1"}, "gate": {id}, "verdict": {"deny"}})
	require.Contains(t, page, "Your decision does not count")
	require.Contains(t, page, "<strong>approved</strong>", "the stale button shows the outcome that stands")

	page = boss.eventually("/console/session?id=s-1", func(p string) bool {
		return strings.Contains(p, ">idle<") && strings.Contains(p, `<span class="kind">gate</span>`)
	})
	for _, span := range []string{"turn", "step", "call", "gate"} {
		require.Contains(t, page, `<span class="kind">`+span+`</span>`)
	}
	require.NotContains(t, page, "Done.")
	require.Contains(t, boss.page("/console/session?id=s-1&show=conversation"), "Done.")
	boss.eventually("/console/costs", func(p string) bool { return strings.Contains(p, "<bdi>mira</bdi>") && strings.Contains(p, "$0.5000") })
	boss.eventually("/console/costs", func(p string) bool { return strings.Contains(p, "<bdi>pay</bdi>") })
}

// value returns the value of a hidden field.
func value(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `name="`+name+`" value="`)
	require.True(t, found, "%s is not in %s", name, page)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

func TestEditIsComparedBeforeItIsApproved(t *testing.T) {
	f := newField(t)
	boss := f.as("boss")
	f.say("s", "write it")
	path, id := f.gateOf("s")
	page := boss.page(path + "&show=request")
	require.Contains(t, page, `<span class="del">- two`)
	require.Contains(t, page, `<span class="add">&#43; 2`)
	require.Contains(t, page, `<span class="same">  three`)
	form := url.Values{"session": {"s"}, "gate": {id}, "args_sha256": {value(t, page, "args_sha256")}, "verdict": {"compare"}, "edited": {`{"path":"other.txt"}`}}
	_, _, page = boss.post("/console/gate/decide", form)
	require.Contains(t, page, `<span class="add">&#43;   &#34;path&#34;: &#34;other.txt&#34;`)
	require.Contains(t, page, "<strong>pending</strong>")
	form.Set("verdict", "edit")
	form.Set("edited", "{")
	status, _, page := boss.post("/console/gate/decide", form)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, page, "the edited arguments are not JSON")
	form.Set("edited", `{"path":"other.txt"}`)
	_, _, page = boss.post("/console/gate/decide", form)
	require.Contains(t, page, "<strong>approved</strong>")
	require.Contains(t, boss.page(path+"&show=request"), "&#34;other.txt&#34;")
}

func TestTurnIsCancelledOnceAndSessionPurged(t *testing.T) {
	f := newField(t)
	boss := f.as("boss")
	f.say("s", "wait")
	page := boss.eventually("/console/session?id=s", func(p string) bool {
		return strings.Contains(p, "waits for tools") && strings.Contains(p, `name="turn"`)
	})
	require.Contains(t, page, `<th scope="row">call</th><td><bdi>wait</bdi></td>`)
	require.Contains(t, boss.page("/console/sessions?state=open"), "step 1 waits for tools")
	form := url.Values{"session": {"s"}, "turn": {value(t, page, "turn")}, "reason": {"too slow"}}
	_, _, page = boss.post("/console/session/cancel", form)
	require.Contains(t, page, "The turn has ended")
	_, _, page = boss.post("/console/session/cancel", form)
	require.Contains(t, page, "Nothing was done: the turn had ended")

	f.say("s", "hello")
	page = boss.eventually("/console/session?id=s&show=conversation", func(p string) bool { return strings.Contains(p, "Hello, hello") })
	form = url.Values{"session": {"s"}, "nonce": {value(t, page, "nonce")}}
	require.NotEqual(t, form.Get("nonce"), value(t, boss.page("/console/session?id=s"), "nonce"), "each page has its own purge")
	status, _, _ := boss.post("/console/session/purge", form)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	form.Set("sure", "s")
	_, _, page = boss.post("/console/session/purge", form)
	require.Contains(t, page, "The session was purged.")
	require.NotContains(t, page, "Hello, hello")
}

func TestDeadDeliveryAndDeadLetterAreRequeued(t *testing.T) {
	f := newField(t)
	boss := f.as("boss")
	f.say("s", "hello", "shop")
	page := boss.eventually("/console/deliveries?status=dead", func(p string) bool { return strings.Contains(p, `<strong class="bad">dead</strong>`) })
	require.Contains(t, page, "1 delivery")
	require.Contains(t, page, "attempt 1, 1 failed")
	_, _, page = boss.post("/console/deliveries/requeue", url.Values{"id": {value(t, page, "id")}})
	require.Contains(t, page, "Requeued.")
	boss.eventually("/console/deliveries?status=dead", func(p string) bool { return strings.Contains(p, "attempt 2, 1 failed") })

	out := f.agent.Topics().ToolUseResult.Name()
	f.raw(out, "nobody", `{"session_id":"nobody","tool_use_id":"none","status":"success","result":{}}`)
	page = boss.eventually("/console/letters", func(p string) bool { return strings.Contains(p, "nobody") })
	require.Contains(t, page, out)
	id := value(t, page, "id")
	letter := "/console/letter?" + url.Values{"id": {id}}.Encode()
	require.NotContains(t, boss.page(letter), "success")
	require.Contains(t, boss.page(letter+"&show=value"), "success")
	_, _, page = boss.post("/console/letters/requeue", url.Values{"id": {id}})
	require.Contains(t, page, "Requeued.")
	boss.eventually(letter, func(p string) bool { return strings.Contains(p, "it was requeued at") })
	_, _, page = boss.post("/console/letters/requeue", url.Values{"id": {id}})
	require.Contains(t, page, "0 of 1 were requeued")
	boss.eventually("/console/letters", func(p string) bool {
		return strings.Contains(p, "2 dead letters") && strings.Contains(p, "failed again")
	})
	require.Contains(t, boss.page("/console/"), "1 dead letter, not requeued.")

	f.raw(out, "after", `{`)
	f.raw(out, "later", `{`)
	page = boss.eventually("/console/letters", func(p string) bool { return strings.Contains(p, "4 dead letters") })
	var ids []string
	for _, part := range strings.Split(page, `name="id" value="`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		ids = append(ids, id)
	}
	require.Len(t, ids, 3, "those that were not requeued")
	topic, _, _ := strings.Cut(id, "/")
	admin, err := sarama.NewClusterAdmin(f.addrs, sarama.NewConfig())
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.DeleteRecords(topic, map[int32]int64{0: -1, 1: -1, 2: -1})) // as the retention does
	_, _, page = boss.post("/console/letters/requeue", url.Values{"id": ids[1:]})
	require.Equal(t, 2, strings.Count(page, "it was deleted by age"), page)
	require.Contains(t, boss.page("/console/"), "1 dead letter, not requeued.", "what is gone waits for no one")
}

func TestRolesAreKept(t *testing.T) {
	f := newField(t)
	f.say("mira:1", "pay 1")
	f.say("otto:1", "pay 2")
	path, id := f.gateOf("mira:1")
	other, otherID := f.gateOf("otto:1")

	viewer := f.as("viewer")
	require.NotContains(t, viewer.page(path+"&show=request"), "<form")
	for action, form := range map[string]url.Values{
		"gate/decide":        {"session": {"mira:1"}, "gate": {id}, "verdict": {"deny"}},
		"session/cancel":     {"session": {"mira:1"}, "turn": {"t"}},
		"session/purge":      {"session": {"mira:1"}, "sure": {"mira:1"}},
		"deliveries/requeue": {"id": {"x"}}, "letters/requeue": {"id": {"x"}},
	} {
		status, _, _ := viewer.post("/console/"+action, form)
		require.Equal(t, http.StatusForbidden, status, action)
	}
	status, _, _ := f.as("decider").post("/console/session/cancel", url.Values{"session": {"mira:1"}, "turn": {"t"}})
	require.Equal(t, http.StatusForbidden, status)
	status, _ = f.as("stranger").get("/console/")
	require.Equal(t, http.StatusUnauthorized, status)

	mira := f.as("mira")
	list := mira.page("/console/gates")
	require.Contains(t, list, "mira:1")
	require.NotContains(t, list, "otto:1")
	require.NotContains(t, mira.page("/console/sessions"), "otto:1")
	status, page := mira.get(other)
	require.Equal(t, http.StatusNotFound, status)
	require.NotContains(t, page, "pay")
	status, _, _ = mira.post("/console/gate/decide", url.Values{"session": {"otto:1"}, "gate": {otherID}, "verdict": {"deny"}})
	require.Equal(t, http.StatusForbidden, status)
	for _, all := range []string{"processors", "costs"} {
		status, _ = mira.get("/console/" + all)
		require.Equal(t, http.StatusForbidden, status)
	}
}

func TestPageOfAnotherSiteCannotAct(t *testing.T) {
	f := newField(t)
	f.say("s", "pay 1")
	_, id := f.gateOf("s")
	form := strings.NewReader(url.Values{"session": {"s"}, "gate": {id}, "verdict": {"deny"}}.Encode())
	r, err := http.NewRequest(http.MethodPost, f.site.URL+"/console/gate/decide", form)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := f.as("boss").client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestTextsAreNeverMarkup(t *testing.T) {
	f := newField(t)
	boss := f.as("boss")
	session := hostile + "/../%2e?#"
	f.say(session, "hostile")
	path, _ := f.gateOf(session)
	f.raw(f.agent.Topics().ToolUseResult.Name(), session, `{"session_id":`+fmt.Sprintf("%q", session)+`,"tool_use_id":"x","status":"success"}`)
	boss.eventually("/console/letters", func(p string) bool { return strings.Contains(p, "1 dead letter") })
	id := "/console/session?" + url.Values{"id": {session}, "show": {"conversation"}}.Encode()
	for _, p := range []string{path + "&show=request", id, "/console/", "/console/sessions", "/console/letters", "/console/gates", "/console/sessions?prefix=" + url.QueryEscape(hostile)} {
		page := boss.page(p)
		require.NotContains(t, page, "<script>document", p)
		require.NotContains(t, page, "<img", p)
		require.NotContains(t, attributes.ReplaceAllString(page, ""), "\u202e", p)
		require.Contains(t, page, "alert(1)", p)
	}
	r, err := boss.client.Get(f.site.URL + path)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Contains(t, r.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'")
}

// attributes are not shown.
var attributes = regexp.MustCompile(`="[^"]*"`)

func TestTextsAreMasked(t *testing.T) {
	f := newField(t, func(_ *agent.Config, c *console.Config) {
		c.Mask = func(p console.Payload) string { return strings.ReplaceAll(p.Text, "otto", "(masked "+p.Kind+")") }
	})
	f.say("s", "pay 1")
	path, _ := f.gateOf("s")
	page := f.as("boss").page(path + "&show=request")
	require.Contains(t, page, "(masked arguments)")
	shown, _, _ := strings.Cut(page, `id="edited"`) // the form has what would run
	require.NotContains(t, shown, "otto")
}

func TestGateThatExpiresShowsItsOutcome(t *testing.T) {
	f := newField(t, func(c *agent.Config, _ *console.Config) {
		c.Approval = &approval.Policy{Default: approval.Ask, TTL: approval.MinTTL}
	})
	boss := f.as("boss")
	f.say("s", "pay 1")
	path, id := f.gateOf("s")
	boss.eventually(path, func(p string) bool { return strings.Contains(p, "<strong>timed_out</strong>") })
	_, _, page := boss.post("/console/gate/decide", url.Values{"session": {"s"}, "gate": {id}, "verdict": {"deny"}})
	require.Contains(t, page, "Your decision does not count")
}

func TestConsoleWithoutAuthenticationOnlyShows(t *testing.T) {
	f := newField(t, func(c *agent.Config, _ *console.Config) { c.Authenticate = nil })
	f.say("s", "pay 1")
	path, id := f.gateOf("s")
	require.Contains(t, f.as("").page(path), "Read only: the console has no authentication.")
	status, _, _ := f.as("").post("/console/gate/decide", url.Values{"session": {"s"}, "gate": {id}, "verdict": {"deny"}})
	require.Equal(t, http.StatusForbidden, status)
}

func TestPasswordOfABrowserIsAToken(t *testing.T) {
	f := newField(t)
	r, err := http.NewRequest(http.MethodGet, f.site.URL+"/console/", nil)
	require.NoError(t, err)
	r.SetBasicAuth("anyone", "stranger")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	require.Contains(t, answer.Header.Get("WWW-Authenticate"), "Basic")
	http.DefaultClient.CloseIdleConnections()
}

func TestStreamSaysWhatHasChanged(t *testing.T) {
	f := newField(t)
	r, err := f.as("boss").client.Get(f.site.URL + "/console/changes")
	require.NoError(t, err)
	defer r.Body.Close()
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	heard := make(chan string, 100)
	go func() {
		defer close(heard)
		b := make([]byte, 1000)
		for {
			n, err := r.Body.Read(b)
			if err != nil {
				return
			}
			heard <- string(b[:n])
		}
	}()
	f.say("s", "pay 1")
	all := ""
	require.Eventually(t, func() bool {
		select {
		case text := <-heard:
			all += text
		default:
		}
		return strings.Contains(all, "gates")
	}, time.Minute, 10*time.Millisecond)
	var refused int
	for range 4 { // four are open then
		r, err := f.as("boss").client.Get(f.site.URL + "/console/changes")
		require.NoError(t, err)
		defer r.Body.Close()
		if r.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	require.Equal(t, 1, refused, "a page that is refused polls")
}

func TestProcessorsAreShown(t *testing.T) {
	f := newField(t)
	page := f.as("boss").eventually("/console/processors", func(p string) bool { return strings.Contains(p, "Committed offsets") })
	require.Contains(t, page, f.name+"-streams")
	require.Contains(t, page, "<td>running</td>")
	require.Contains(t, page, "<strong>"+f.name+"-gate-streams</strong>", "the topology")
	require.Contains(t, page, "flowchart LR")
}
