package migrate

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// entry is a record of the source; an empty value is a tombstone.
type entry struct {
	partition int32
	at        int64
	value     string
}

// The records of a session.
const (
	asked = `{"user_id":"mira","total_session_cost":0.1,"previous_messages":[],"last_input_message":{"role":"user","content":"q1"},` +
		`"last_input_response":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}],` +
		`"tool_uses":[{"tool_use_id":"t","name":"n","total_tools":1}],"end_turn":false}`
	answered = `{"user_id":"mira","total_session_cost":0.2,"previous_messages":[{"role":"user","content":"q1"}],` +
		`"last_input_message":{"role":"user","content":"q2"},"last_input_response":[{"role":"assistant","content":"a2"}],"end_turn":true}`
	openTurn = `{"user_id":"mira","total_session_cost":0.3,"previous_messages":[{"role":"user","content":"q1"},{"role":"user","content":"q2"},` +
		`{"role":"assistant","content":"a2"}],"last_input_message":{"role":"user","content":"q3"},"last_input_response":[],` +
		`"tool_uses":[{"tool_use_id":"t","name":"n"}],"end_turn":false}`
	camelCase = `{"sessionId":"s","userId":"otto","cost":0.25,"prevSessionCost":0.5,"previousMessages":[{"role":"user","content":"c1"}],` +
		`"lastInputMessage":{"role":"user","content":"c2"},"lastInputResponse":[{"role":"assistant","content":"c3"}],"endTurn":true}`
	failed  = `{"sessionId":"s","messages":[{"role":"assistant","content":"Sorry."}],"endTurn":true}`
	history = `[{"role":"user","content":"q1"},{"role":"user","content":"q2"},{"role":"assistant","content":"a2"}]`
)

// old is a record of an older image with one exchange.
func old(n int, cost float64) string {
	return fmt.Sprintf(`{"user_id":"mira","cost":%v,"messages":[{"role":"user","content":"o%d"},{"role":"assistant","content":"p%d"}],`+
		`"end_turn":true}`, cost, n, n)
}

func oldHistory(numbers ...int) string {
	text := "["
	for i, n := range numbers {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"role":"user","content":"o%d"},{"role":"assistant","content":"p%d"}`, n, n)
	}
	return text + "]"
}

const (
	oldCall = `{"user_id":"mira","cost":0.5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t"}]}],` +
		`"tool_uses":[{"tool_use_id":"t","name":"n"}],"end_turn":false}`
	oldResult = `{"user_id":"mira","cost":0.5,"messages":[{"role":"tool","content":[{"tool_use_id":"t"}]},{"role":"assistant","content":"y"}],"end_turn":true}`
	oldLoop   = `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t"}]},` +
		`{"role":"tool","content":[{"tool_use_id":"t"}]},{"role":"assistant","content":"y"}]`
)

// play runs both passes over the records of one session.
func play(t *testing.T, x *index, records []entry) (s session, all []*topics.ThinkResponse, known bool) {
	t.Helper()
	c, err := topics.For("a")
	require.NoError(t, err)
	next := map[int32]int64{}
	places := make([]place, len(records))
	for i, e := range records {
		places[i] = place{e.partition, next[e.partition]}
		next[e.partition]++
	}
	each := func(partition int32, do func(p place, e entry)) {
		for i, e := range records {
			if e.partition == partition {
				do(places[i], e)
			}
		}
	}
	decode := func(e entry) topics.ThinkResponse {
		d := c.ThinkRequestResponse.Codec().Unmarshal([]byte(e.value))
		require.NoError(t, d.Err)
		return d.Value
	}
	for partition := range int32(2) {
		each(partition, func(p place, e entry) {
			if e.value == "" {
				x.remove("s", p, e.at)
				return
			}
			x.add("s", p, e.at, decode(e))
		})
	}
	h := newHistories(x)
	for partition := range int32(2) {
		each(partition, func(p place, e entry) {
			if e.value != "" && h.wants("s", p) {
				if got, done := h.add("s", p, decode(e)); done {
					require.Nil(t, all, "a history is complete once")
					all = got
				}
			}
		})
	}
	require.Empty(t, h.open)
	s, known = x.sessions["s"]
	if known {
		require.Len(t, all, len(s.places()))
	}
	return s, all, known
}

func TestHistoryIsThatOfTheLastAnswer(t *testing.T) {
	at := func(values ...string) (all []entry) {
		for i, v := range values {
			all = append(all, entry{0, int64(i), v})
		}
		return all
	}
	for name, c := range map[string]struct {
		records []entry
		history string
		cost    float64
		user    string
	}{
		"an answer":                            {at(answered), history, 0.2, "mira"},
		"the latest answer":                    {at(camelCase, answered), history, 0.2, "mira"},
		"an open turn after it":                {at(answered, openTurn), history, 0.3, "mira"},
		"only an open turn":                    {at(asked), "", 0.1, ""},
		"camel case":                           {at(camelCase), `[{"role":"user","content":"c1"},{"role":"user","content":"c2"},{"role":"assistant","content":"c3"}]`, 0.75, "otto"},
		"a tombstone before it":                {at(camelCase, "", answered), history, 0.2, "mira"},
		"a failure after it":                   {at(answered, failed), history, 0.2, "mira"},
		"older images":                         {at(old(1, 0.5), old(2, 0.25)), oldHistory(1, 2), 0.75, "mira"},
		"older images after an answer":         {at(answered, old(1, 0.5)), history[:len(history)-1] + "," + oldHistory(1)[1:], 0.7, "mira"},
		"an answer after older images":         {at(old(1, 0.5), answered), history, 0.2, "mira"},
		"an older image that used a tool":      {at(oldCall, oldResult), oldLoop, 1, "mira"},
		"an older image whose tool is missing": {at(old(1, 0.5), oldCall, old(2, 0.5)), oldHistory(1, 2), 1.5, "mira"},
		"an older image whose tool is open":    {at(old(1, 0.5), oldCall), oldHistory(1), 1, "mira"},
		"a worker that omits the history": {
			at(answered, `{"last_input_message":{"role":"user","content":"q3"},"last_input_response":[{"role":"assistant","content":"a3"}],"end_turn":true}`),
			history[:len(history)-1] + `,{"role":"user","content":"q3"},{"role":"assistant","content":"a3"}]`, 0.2, "mira",
		},
		"a later answer in another partition":    {[]entry{{0, 1, camelCase}, {1, 2, answered}}, history, 0.2, "mira"},
		"an earlier answer in another partition": {[]entry{{0, 2, answered}, {1, 1, camelCase}}, history, 0.2, "mira"},
		"older images in two partitions":         {[]entry{{0, 1, old(1, 0.5)}, {1, 2, old(2, 0.5)}}, oldHistory(1, 2), 1, "mira"},
		"an earlier tombstone elsewhere":         {[]entry{{0, 2, answered}, {1, 1, ""}}, history, 0.2, "mira"},
	} {
		t.Run(name, func(t *testing.T) {
			s, records, known := play(t, newIndex(), c.records)
			require.True(t, known)
			in := imported(s, records)
			require.Equal(t, c.history, string(in.History))
			require.InDelta(t, c.cost, *in.Cost, 1e-9)
			if c.user == "" {
				require.Nil(t, in.User)
				return
			}
			require.Equal(t, c.user, *in.User)
		})
	}
}

func TestEndedSessionHasNoHistory(t *testing.T) {
	for name, records := range map[string][]entry{
		"at the end":                 {{0, 1, answered}, {0, 2, ""}},
		"later in another partition": {{0, 1, answered}, {1, 2, ""}},
		"alone":                      {{0, 1, ""}},
		"of older images":            {{0, 1, old(1, 1)}, {0, 2, old(2, 1)}, {0, 3, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, known := play(t, newIndex(), records)
			require.False(t, known)
			x := newIndex()
			x.keepEnded = true
			s, _, known := play(t, x, records)
			require.True(t, known && s.ended)
			require.Empty(t, s.places())
		})
	}
}

func TestExportedRecordHasTheWholeSession(t *testing.T) {
	for name, c := range map[string]struct {
		records []entry
		want    string
	}{
		"an answer":       {[]entry{{0, 1, answered}}, history},
		"with open turn":  {[]entry{{0, 1, answered}, {0, 2, openTurn}}, history},
		"older images":    {[]entry{{0, 1, old(1, 1)}, {0, 2, old(2, 1)}}, oldHistory(1, 2)},
		"ended and begun": {[]entry{{0, 1, old(1, 1)}, {0, 2, ""}, {0, 3, old(3, 1)}}, oldHistory(3)},
	} {
		t.Run(name, func(t *testing.T) {
			x := newIndex()
			x.keepEnded = true
			s, records, _ := play(t, x, c.records)
			r := latest("s", s, records)
			require.Equal(t, c.want, string(exchange(r)), "as FlightDeck joins it")
			require.Equal(t, "s", *r.SessionID)
			require.Equal(t, "mira", *r.UserID)
			require.NotNil(t, r.PreviousMessages)
			require.False(t, math.IsNaN(*r.TotalSessionCost))
		})
	}
}

func TestEntryOfTheIndexIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(session{}), uintptr(48))
}

func BenchmarkIndexOfAMillionSessions(b *testing.B) {
	c, err := topics.For("a")
	require.NoError(b, err)
	r := c.ThinkRequestResponse.Codec().Unmarshal([]byte(answered)).Value
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	const sessions = 1_000_000
	for b.Loop() {
		before := heap()
		x := newIndex()
		for i := range sessions {
			x.add(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), place{0, int64(i)}, int64(i), r) // a UUID
		}
		b.ReportMetric((heap()-before)/sessions, "B/session")
		runtime.KeepAlive(x)
	}
}
