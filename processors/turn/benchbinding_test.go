package turn

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/rows/turnrow"
	"github.com/turntable-streams/turntable/topics"
)

const (
	benchSessions = 1000
	// benchPast is how many turns a session has had: what it remembers is in parts by then.
	benchPast = 20
	// benchAtOnce is how many sessions are in a turn at the same time.
	benchAtOnce = 100
)

// benchShape is the size of the turns: their history in bytes, their tools, and how much each tool says.
type benchShape struct {
	name                 string
	history, tools, said int
}

// BenchmarkBinding measures a turn from its decoded events to the encoded rows and outputs. The sessions take turns, as under
// load. Rows and their parts are read from a map.
func BenchmarkBinding(b *testing.B) {
	for _, shape := range []benchShape{
		{"history=0KB", 0, 2, 0},
		{"history=10KB", 10 << 10, 2, 0},
		{"said=10KB", 0, 2, 10 << 10},
		{"said=8x8KB", 10 << 10, 8, 8 << 10},
	} {
		b.Run(shape.name, func(b *testing.B) {
			d := newDock(b, shape)
			b.ReportAllocs()
			d.at.reads, d.written = 0, 0
			for n := 0; b.Loop(); n++ {
				if n%benchAtOnce == 0 {
					b.StopTimer()
					d.write(n)
					b.StartTimer()
				}
				d.turn()
			}
			b.ReportMetric(float64(d.at.reads)/float64(b.N), "parts-read/op")
			b.ReportMetric(float64(d.written)/float64(b.N), "written-B/op")
		})
	}
}

// dock has the rows of many sessions, and the events of the turns to come.
type dock struct {
	*play
	b       *testing.B
	shape   benchShape
	history string
	rows    map[string]table
	events  []event // one event of each turn, then the next of each
	next    int
	at      counted
	written int // bytes of rows and parts
}

// counted is a table that counts the parts that are read.
type counted struct {
	table
	reads int
}

func (c *counted) Part(n uint32) ([]byte, error) {
	c.reads++
	return c.table.Part(n)
}

func newDock(b *testing.B, shape benchShape) *dock {
	d := &dock{play: newPlay(b), b: b, shape: shape, rows: map[string]table{}}
	if size := shape.history; size > 0 {
		one := `{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}`
		d.history = one + strings.Repeat(","+one, size/len(one)-1)
	}
	for range benchPast {
		d.script(d.key)
		for range d.events {
			d.apply()
		}
	}
	first := d.rows[d.key]
	for n := range benchSessions {
		d.rows[sessionName(n)] = table{bytes.Clone(first.row), maps.Clone(first.parts)}
	}
	for n := range benchSessions {
		if n%benchAtOnce == 0 {
			d.write(n)
		}
		d.turn()
	}
	return d
}

func sessionName(n int) string { return fmt.Sprintf("session-%06d", n%benchSessions) }

// write writes the events of the next turns.
func (d *dock) write(n int) {
	names := make([]string, benchAtOnce)
	for i := range names {
		names[i] = sessionName(n + i)
	}
	d.script(names...)
}

func (d *dock) script(sessions ...string) {
	d.events, d.next = d.events[:0], 0
	d.now = d.now.Add(time.Second)
	add := func(topic string, value func(turn string) string) {
		for _, s := range sessions {
			d.key = s
			e, ok := d.event(topic, []byte(value(s+"."+fmt.Sprint(d.now.Unix()))))
			require.True(d.b, ok)
			d.events = append(d.events, e)
		}
	}
	question := func(turn string) string { return message("Which berth is free at 18:00? " + turn) }
	asked := func(input string) string {
		return `{"session_id":"s1","user_id":"mira","total_session_cost":0.5,"think_cost":0.1,"previous_messages":[` +
			d.history + `],"last_input_message":` + input + `,`
	}
	text := "Berth N4 is free from 17:30 until noon of the day after." + strings.Repeat(" N4", d.shape.said/3)
	result := func(id string) string { return toolResult(id, text) }
	ids := func(turn string) []string {
		all := make([]string, d.shape.tools)
		for i := range all {
			all[i] = turn + string(rune('a'+i))
		}
		return all
	}
	add("message-input", question)
	add("think-request-response", func(turn string) string {
		return asked(question(turn)) + calling(ids(turn)...) + `}`
	})
	for i := range d.shape.tools {
		add("tool-use-result", func(turn string) string { return result(ids(turn)[i]) })
	}
	add("message-input", func(turn string) string { return `{"session_id":"s1","role":"tool","content":[]}` })
	for _, e := range d.events[len(d.events)-len(sessions):] {
		e.source().Own = true // the turn's own tool message comes back
	}
	add("think-request-response", func(turn string) string {
		var results []string
		for _, id := range ids(turn) {
			results = append(results, result(id))
		}
		return asked(d.toolMessage(results...)) + saying("Berth N4 is free at 18:00. "+turn) + `}`
	})
}

// toolMessage is what the model is asked with the results of a step's calls.
func (d *dock) toolMessage(results ...string) string {
	user := "mira"
	turn := &turnrow.OpenTurn{UserId: &user}
	for _, r := range results {
		value := d.topics.ToolUseResult.Codec().Unmarshal([]byte(r)).Value
		turn.Calls = append(turn.Calls, &turnrow.Call{ToolUseId: value.ToolUseID, Name: value.Name, Result: resultOf(value)})
	}
	s := &transition{session: session{key: d.key, now: d.now, row: &turnrow.State{Turn: turn}}}
	return string(topics.EncodeMessage(topics.Message(s.buildToolMessage(copies{metadata: true}))))
}

// turn applies as many events as a turn has.
func (d *dock) turn() {
	for range 4 + d.shape.tools {
		d.apply()
	}
}

func (d *dock) apply() {
	e := d.events[d.next]
	d.next++
	at := d.rows[e.session()]
	if at.parts == nil {
		at.parts = map[uint32][]byte{}
	}
	d.at.table = at
	if e.writtenByTurn() {
		return
	}
	done, err := d.bind.decide(&d.at, e, d.now)
	if err != nil || !done.Changed {
		d.b.Fatal("nothing happened", err)
	}
	for _, p := range done.NewParts {
		at.parts[p.Number] = p.Value
		d.written += len(p.Value)
	}
	for _, n := range done.UnusedParts {
		delete(at.parts, n)
	}
	at.row = done.row
	d.written += len(at.row)
	d.rows[e.session()] = at
}
