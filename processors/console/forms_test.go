package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
	"github.com/turntable-streams/turntable/processors/internal/seen"
	"github.com/turntable-streams/turntable/processors/operations"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// small returns a console that has read nothing.
func small(t *testing.T, change ...func(*Config)) *Console {
	t.Helper()
	catalog, err := topics.For("harbor", topics.WithGates(), topics.WithDeliveries())
	require.NoError(t, err)
	config := Config{Door: auth.Door{Open: true}}
	for _, ch := range change {
		ch(&config)
	}
	c, err := New(catalog, nowhere{}, config)
	require.NoError(t, err)
	return c
}

// asks returns a request of a caller, and where its answer is.
func (c *Console) asks(path string, caller auth.Caller) (*request, *httptest.ResponseRecorder) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/console"+path, nil)
	return &request{Request: r, Visit: &entrance.Visit{Caller: caller}, w: w, console: c, now: c.config.Clock.Now()}, w
}

// get returns a page as a visitor without a credential sees it.
func (c *Console) get(path string) (status int, page string) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/console"+path, nil))
	return w.Code, w.Body.String()
}

var (
	formOf   = regexp.MustCompile(`(?s)<form.*?</form>`)
	buttonOf = regexp.MustCompile(`<button[^>]*value="([^"]*)"`)
	askedFor = gate.View{
		GateID: "g", SessionID: "s", Kind: topics.GateInput, Tool: "pay", Args: topics.Raw(`{"cents":1}`), ArgsSHA256: topics.ArgsSHA256(topics.Raw(`{"cents":1}`)),
		Allowed: []topics.GateVerdict{topics.VerdictApprove, topics.VerdictDeny, topics.VerdictAnswer, topics.VerdictEdit},
	}
)

// Browsers press the first button of a form when someone types Enter into a field.
func TestEnterInAReasonDecidesNothing(t *testing.T) {
	c := small(t, func(c *Config) { c.Crews = answering(http.StatusOK, `{}`) })
	r, w := c.asks("/gate?show=request", auth.Caller{})
	r.show(http.StatusOK, "gate", page{Body: r.gatePageOf(askedFor)})
	forms := formOf.FindAllString(w.Body.String(), -1)
	r, w = c.asks("/crews?show=texts", auth.Caller{})
	b := &crewPage{ID: "c", Shown: true, Agents: []crewAgent{{ID: "12345678", Permissions: []crewPermission{{ID: "p", ArgsSHA256: "d1"}}}}}
	r.show(http.StatusOK, "crews", page{Body: b})
	for _, form := range append(forms, formOf.FindAllString(w.Body.String(), -1)...) {
		require.Equal(t, "review", buttonOf.FindStringSubmatch(form)[1])
		require.Contains(t, form, `name="reason"`)
	}
	require.Len(t, forms, 1)

	for _, form := range []url.Values{
		{"verdict": {"review"}, "reason": {"no, the wrong account"}, "answer": {"typed"}}, {"verdict": {"answer"}, "answer": {" \n"}, "reason": {"no, the wrong account"}},
	} {
		form.Set("args_sha256", askedFor.ArgsSHA256)
		r, w = c.asks("/gate", auth.Caller{})
		d, wrong := r.decision(askedFor, form)
		require.False(t, r.accepts(askedFor, d, wrong, form))
		require.Contains(t, w.Body.String(), "no, the wrong account", "the form keeps what was typed")
		require.Contains(t, w.Body.String(), form.Get("answer"))
	}
	r, w = c.asks("/crews", auth.Caller{})
	answerCrew(r, url.Values{"verdict": {"review"}, "agent": {"a"}, "request": {"p"}})
	require.Contains(t, w.Body.String(), "Nothing was done")
}

// answering is a door of crews that gives one answer.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// Config.Authenticate and its MayUse are the host's: they may be slow, or panic.
func TestHostIsAskedWithoutTheLockOfTheIndex(t *testing.T) {
	c := stored(t, 300)
	x := c.follower.index
	for i := range 300 {
		x.putGates(x.at(fmt.Sprintf("user-%07d:session", i), gateRow, 0, int64(i)), []gate.View{{GateID: fmt.Sprint("g-", i)}})
		x.letters.add(&operations.Letter{ID: fmt.Sprint("l-", i), At: "2026-11-28T00:00:00Z"}, 1000)
	}
	locked := 0
	caller := auth.Caller{MayUse: func(string) bool {
		if !x.mu.TryLock() {
			locked++
			return false
		}
		x.mu.Unlock()
		return true
	}}
	for path, serve := range map[string]route{
		"/": attention, "/sessions": sessions, "/sessions?state=open": sessions, "/sessions?state=overdue": sessions, "/sessions?prefix=user": sessions,
		"/gates": gates, "/deliveries": deliveries, "/letters": showLetters, "/costs": costs,
	} {
		r, w := c.asks(path, caller)
		serve(r)
		require.Equal(t, http.StatusOK, w.Code, path)
	}
	require.Zero(t, locked)
}

func TestAnswerToACrewSaysWhatIsKnown(t *testing.T) {
	for _, door := range []struct {
		status int
		body   string
		at     string
		code   int
		says   string
	}{
		{http.StatusOK, `{}`, "said=decided-", http.StatusSeeOther, ""},
		{http.StatusAccepted, `{}`, "said=written-", http.StatusSeeOther, ""},
		{http.StatusConflict, `{"error":"Another outcome stands"}`, "said=other-", http.StatusSeeOther, ""},
		{http.StatusConflict, `{"error":"` + seen.Refusal + `"}`, "", http.StatusConflict, "read the whole request first"},
		{http.StatusPreconditionFailed, `{"error":"argsSha256 is not the digest of the request"}`, "", http.StatusPreconditionFailed, "is not the digest"},
	} {
		c := small(t, func(c *Config) { c.Crews = answering(door.status, door.body) })
		r, w := c.asks("/crews", auth.Caller{})
		answerCrew(r, url.Values{"verdict": {"approve"}, "crew": {"c"}, "agent": {"a"}, "request": {"p"}})
		require.Equal(t, door.code, w.Code)
		require.Contains(t, w.Header().Get("Set-Cookie"), door.at)
		require.Contains(t, w.Body.String(), door.says)
	}
	c := small(t, func(c *Config) { c.Crews = answering(http.StatusOK, `{}`) })
	r, w := c.asks("/crews", auth.Caller{})
	answerCrew(r, url.Values{"verdict": {"deny"}, "crew": {"c"}, "agent": {"a"}, "request": {"p"}, "reason": {"\xff"}})
	require.Equal(t, http.StatusBadRequest, w.Code, "it cannot be JSON")
	r, w = c.asks("/crews?show=texts", auth.Caller{})
	b := &crewPage{ID: "c", Shown: true, Agents: []crewAgent{{ID: "12345678", Permissions: []crewPermission{{ID: "p", ArgsSHA256: "d1"}}}}}
	r.show(http.StatusOK, "crews", page{Body: b})
	require.Contains(t, w.Body.String(), `name="args_sha256" value="d1"`, "the answer is about what was shown")
}

func TestConsoleOfAnAgentKeepsTheSettingsOfItsDoor(t *testing.T) {
	catalog, err := topics.For("harbor")
	require.NoError(t, err)
	logs, logged := observer.New(zap.WarnLevel)
	rejects := func(*http.Request) (auth.Caller, error) { return auth.Caller{}, auth.ErrRejected }
	config := Config{Door: auth.Door{Hosts: []string{"ops.example.com"}}}
	for _, door := range []auth.Door{{Authenticate: rejects}, {Logger: zap.New(logs)}, {Logger: zap.New(logs), Open: true}} {
		_, h, _, err := config.For(door, catalog, nowhere{}, nil, processors.Topology{}, turn.Budgets{})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://other.example.com/console/", nil))
		require.Equal(t, http.StatusForbidden, w.Code)
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://ops.example.com/console/", nil))
		require.Equal(t, door.Authenticate != nil, w.Code == http.StatusUnauthorized)
	}
	require.Equal(t, 1, logged.FilterMessageSnippet("console is open").Len(), "a console that anyone may read is warned about, unless that is meant")
}

func TestDecisionFollowsARequestThatTookThePlaceOfItsGate(t *testing.T) {
	first := gate.View{GateID: "first", Tool: "pay", ArgsSHA256: "d", Outcome: &gate.OutcomeView{Cause: topics.CauseParentCannotAsk}}
	next := gate.View{GateID: "next", Tool: "pay", ArgsSHA256: "d", Origin: gate.Origin{ParentGateID: "first"}}
	other := gate.View{GateID: "other", Tool: "pay", ArgsSHA256: "e", Origin: gate.Origin{ParentGateID: "first"}}
	at, ended := settled([]gate.View{other, next, first}, "first")
	require.Equal(t, "next", at)
	require.False(t, ended, "the decision has no outcome yet")
	next.Outcome = &gate.OutcomeView{Cause: topics.CauseHuman}
	at, ended = settled([]gate.View{other, next, first}, at)
	require.Equal(t, "next", at)
	require.True(t, ended)
	at, _ = settled([]gate.View{other, first}, "first")
	require.Equal(t, "first", at, "a request with other arguments was not decided")
}

func TestEditIsOfTheFileThatItsObjectNames(t *testing.T) {
	files := func(args string) (list []string) {
		for _, e := range edits(topics.Raw(args)) {
			list = append(list, e.file)
		}
		return list
	}
	edit := `"old_string":"a","new_string":"b"`
	require.Equal(t, []string{"x.txt"}, files(`{`+edit+`,"path":"x.txt"}`))
	require.Equal(t, []string{"x.txt", "x.txt"}, files(`{"edits":[{`+edit+`},{`+edit+`}],"path":"x.txt"}`))
	require.Equal(t, []string{"x.txt", "y.txt"}, files(`[{`+edit+`,"path":"x.txt"},{`+edit+`,"path":"y.txt"}]`))
	require.Equal(t, []string{"", "y.txt"}, files(`{"a":{`+edit+`},"b":{`+edit+`,"path":"y.txt"}}`))
	require.Equal(t, []string{"x.txt or y.txt"}, files(`{`+edit+`,"path":"x.txt","file":"y.txt"}`))
	require.Equal(t, []string{"x.txt or y.txt"}, files(`{"path":"x.txt","path":"y.txt",`+edit+`}`))
	require.Equal(t, []string{"x.txt or y.txt"}, files(`{"path":"x.txt","edit":{"file":"y.txt",`+edit+`}}`))
	require.Empty(t, files(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)))
	require.Empty(t, files(`"text"`))
	require.Empty(t, files(`{"path":`))
}

func TestComparedArgumentsAreMaskedAndVisible(t *testing.T) {
	c := small(t, func(c *Config) {
		c.Mask = func(p Payload) string { return strings.ReplaceAll(p.Text, "4111", "(card)") }
	})
	r, w := c.asks("/gate", auth.Caller{})
	v := askedFor
	v.Args = topics.Raw("{\"to\":\"otto \u202e\",\"card\":\"4111\"}")
	v.Allowed = []topics.GateVerdict{topics.VerdictApprove, topics.VerdictEdit}
	r.again(v, url.Values{"verdict": {"compare"}, "edited": {string(v.Args) + "\r\n"}, "args_sha256": {"d"}}, "")
	require.NotContains(t, w.Body.String(), "\u202e")
	_, rest, found := strings.Cut(w.Body.String(), "<h3>Your changes</h3>")
	require.True(t, found)
	compared, _, _ := strings.Cut(rest, "</figure>")
	require.NotContains(t, compared, "4111")
	require.Contains(t, compared, "(card)")
	require.Contains(t, compared, "0 added")
}

func TestLettersAndMarksThatATopicHasLostAreForgotten(t *testing.T) {
	x := small(t).follower.index
	topic := operations.LetterTopic("harbor")
	record := func(offset int64, headers ...string) processors.Inbound {
		r := processors.Inbound{Topic: topic, Offset: offset, Timestamp: time.UnixMilli(1000 + offset), Key: []byte("k")}
		for i := 0; i < len(headers); i += 2 {
			r.Headers = append(r.Headers, processors.Header{Name: headers[i], Value: []byte(headers[i+1])})
		}
		return r
	}
	at := func(offset string) []string {
		return []string{topics.HeaderErrorSourceTopic, "in", topics.HeaderErrorSourcePartition, "0", topics.HeaderErrorSourceOffset, offset}
	}
	for i := range 4 {
		x.letters.add(operations.LetterOf("harbor", record(int64(i), at(fmt.Sprint(i))...)), 100)
	}
	require.Equal(t, 4, x.letters.notRequeued())
	for i, of := range []string{"1", "3"} {
		x.letters.mark(topic, record(int64(4+i), append(at(of), topics.HeaderErrorRequeued, "1")...))
	}
	require.Equal(t, 2, x.letters.notRequeued(), "those that were requeued need no one")
	x.letters.forget(topic, 0, 2)
	require.Equal(t, 2, x.letters.byTime.n)
	require.Equal(t, 1, x.letters.notRequeued())
	x.letters.forget(topic, 0, 5) // the first mark too
	again := operations.LetterOf("harbor", record(7, at("1")...))
	require.False(t, x.letters.judged(topic, again).FailedAgain, "its mark is forgotten")
	again = operations.LetterOf("harbor", record(8, at("3")...))
	require.True(t, x.letters.judged(topic, again).FailedAgain)
	require.Zero(t, x.letters.notRequeued())
}

func TestWhatIsNotKnownIsNotSaidNotToExist(t *testing.T) {
	c := small(t)
	status, page := c.get("/session?id=s")
	require.Equal(t, http.StatusServiceUnavailable, status, "the tables are not read")
	require.Contains(t, page, "not known now")
	require.NotContains(t, page, "does not exist")
	require.Contains(t, page, `id="purge"`, "a session whose row cannot be read can be purged")
	status, _ = c.get("/gate?session=s&id=g")
	require.Equal(t, http.StatusServiceUnavailable, status)
	r, w := c.asks("/session/cancel", auth.Caller{})
	_, _, err := r.turnOf("s")
	require.ErrorIs(t, err, errNotReady)
	close(c.follower.follows.Ready)
	_, _, err = c.place("s", turnRow)
	require.NoError(t, err)
	c.follower.index.forgotten = true
	_, _, err = c.place("s", turnRow)
	require.ErrorIs(t, err, errForgotten)
	require.Empty(t, w.Body.String())
}

func TestOutcomeOfAnActionStaysAndCannotBeClaimed(t *testing.T) {
	c := small(t)
	r, w := c.asks("/session/purge", auth.Caller{})
	r.to("purged", "/sessions", "state", "open")
	seen := func(path string) bool {
		q := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/console"+path, nil)
		for _, cookie := range w.Result().Cookies() {
			q.AddCookie(cookie)
		}
		page := httptest.NewRecorder()
		c.ServeHTTP(page, q)
		return strings.Contains(page.Body.String(), "The session was purged")
	}
	require.Equal(t, "/console/sessions?state=open", w.Header().Get("Location"))
	require.True(t, seen("/sessions?state=open"))
	require.True(t, seen("/sessions?state=open"), "a refresh keeps it")
	require.False(t, seen("/sessions"), "it is about its page")
	w = httptest.NewRecorder()
	require.False(t, seen("/sessions?state=open&said=purged"))
}

func TestOldLagsAreNotShown(t *testing.T) {
	c := small(t)
	now := time.Unix(1000, 0)
	c.lags.put(now, []operations.GroupLag{{Group: "g", Lag: 1}}, nil)
	all, _, failed := c.lags.get(now.Add(watched / 2))
	require.Len(t, all, 1)
	require.Empty(t, failed)
	c.lags.put(now.Add(watched/2), nil, errNotReady)
	all, at, failed := c.lags.get(now.Add(watched / 2))
	require.Len(t, all, 1)
	require.Equal(t, now.UnixMilli(), at, "they are as old as the last answer")
	require.NotEmpty(t, failed)
	all, _, failed = c.lags.get(now.Add(watched))
	require.Empty(t, all)
	require.NotEmpty(t, failed)
	_, page := c.get("/")
	about, _, _ := strings.Cut(strings.SplitAfter(page, `data-about="`)[1], `"`)
	require.Contains(t, about, "time", "the page asks again when the lags are read")
	require.Contains(t, page, "The console was not told of groups in this process.")
}

// Elements whose IDs repeat would take the focus of each other when the page is refreshed.
func TestElementIDsAreUnique(t *testing.T) {
	c := stored(t, 300)
	x := c.follower.index
	for i := range 3 {
		id := fmt.Sprintf("user-%07d:session", 100*i)
		x.putGates(x.at(id, gateRow, 0, int64(i)), []gate.View{{GateID: fmt.Sprint("g-", i)}, {GateID: fmt.Sprint("h-", i)}})
		x.putDeliveries(x.at(id, deliveryRow, 0, int64(i)), []delivery.View{
			{SessionID: id, DeliveryID: fmt.Sprint("d-", i), Status: delivery.StatusDead}, {SessionID: id, DeliveryID: fmt.Sprint("e-", i), Status: delivery.StatusDead},
		})
	}
	for _, path := range []string{"/", "/sessions", "/gates", "/deliveries?status=dead", "/letters", "/costs", "/processors"} {
		status, page := c.get(path)
		require.Equal(t, http.StatusOK, status, path)
		seen := map[string]bool{}
		for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			require.False(t, seen[id[1]], "%s of %s", id[1], path)
			seen[id[1]] = true
		}
	}
}

func TestPurgedSessionHasNoSpansAfterARestart(t *testing.T) {
	f := small(t).follower
	topicsBack := f.topicsBack()
	require.Equal(t, f.catalog.SessionControl.Name(), topicsBack[0])
	require.ElementsMatch(t, f.turns.Topics, topicsBack)
	step := func(turn string, ms int64) {
		f.onTurn(processors.Inbound{
			Topic: f.catalog.EnrichedMessageInput.Name(), Key: []byte("s"), Timestamp: time.UnixMilli(ms), Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte(turn + "/1/think/0")}},
		})
	}
	f.onTurn(processors.Inbound{Topic: topicsBack[0], Key: []byte("s"), Timestamp: time.UnixMilli(100), Value: []byte(`{"action":"purge"}`)})
	step("before", 50)
	spans, _ := f.lines.of("s")
	require.Empty(t, spans)
	step("after", 150)
	spans, _ = f.lines.of("s")
	require.Len(t, spans, 2)
}

func TestActionsWaitForABoundedTimeAndReadOnlyWhatHasChanged(t *testing.T) {
	c := small(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*effectPoll)
	defer cancel()
	r, _ := c.asks("/session/cancel", auth.Caller{})
	r.Request = r.WithContext(ctx)
	looked := 0
	require.False(t, r.await("s", turnRow, func() bool { looked++; return false }))
	require.Equal(t, 1, looked, "the row has not changed")

	c.requeuing <- struct{}{} // someone else
	r, w := c.asks("/letters/requeue", auth.Caller{})
	r.Request = r.WithContext(ctx)
	requeueLetters(r, url.Values{"id": {"l"}})
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "others requeue dead letters now")
}

func TestSessionListsItsNewestLetters(t *testing.T) {
	c := small(t)
	x := c.follower.index
	for i := range 30 {
		x.letters.add(&operations.Letter{ID: fmt.Sprintf("letter-%02d", i), Key: fmt.Sprint("key-", i%2), At: topics.Timestamp(time.UnixMilli(int64(i)))}, 1000)
	}
	_, page := c.get("/session?id=key-1")
	require.Contains(t, page, "5 older ones are not listed here")
	require.Contains(t, page, "letter-29")
	require.NotContains(t, page, "letter-01")
	_, page = c.get("/letters?key=key-1")
	require.Contains(t, page, "letter-01")
	require.NotContains(t, page, "letter-02")
	require.Contains(t, page, "1 to 15")
}
