package whole

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// People write on several channels, in rooms, threads and direct messages, and hand tasks off; tasks are cancelled and time out;
// events of platforms are repeated; every reader may crash at any time, and reads records in any order of topics. Each delegation
// has one end, and is announced once, by one delivery, where the message came from that asked for it.
func TestEachResultReachesItsOriginOnceAndNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarbor(t)
		for range rapid.IntRange(5, 250).Draw(t, "moves") {
			h.move()
		}
		h.finish()
		for _, s := range h.stations {
			s.crash(0)
		}
		h.finish()
		h.judge()
	})
}

// move lets something happen.
func (h *harbor) move() {
	draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(h.t, "choice") }
	switch rapid.SampledFrom([]string{"say", "read", "read", "read", "read", "read", "read", "cut", "crash", "time", "bridge"}).Draw(h.t, "move") {
	case "say":
		h.sayAnything(draw)
	case "cut":
		if len(h.stations) > 0 {
			h.stations[draw(len(h.stations))].commit()
		}
	case "crash":
		if len(h.stations) > 0 {
			h.stations[draw(len(h.stations))].crash(draw(8))
		}
	case "time":
		if h.now.Sub(time.UnixMilli(1_790_000_000_000)) < 3*time.Minute {
			h.now = h.now.Add(time.Duration(draw(3000)) * time.Millisecond)
		}
	case "bridge":
		h.restartBridge()
	default:
		for range 4 {
			if list := h.ready(); len(list) > 0 {
				h.work(list[draw(len(list))], draw(4))
			}
		}
	}
}

// sayAnything lets a person write, or the platform repeat what one wrote.
func (h *harbor) sayAnything(draw func(int) int) {
	n := len(h.asked)
	if n > 0 && draw(4) == 0 {
		n = draw(n)
	}
	event := fmt.Sprint("e", n)
	if o, ok := h.asked[event]; ok { // a repeat
		h.receive(event, o, h.said(event))
		return
	}
	user := fmt.Sprint("u", draw(2))
	o := topics.Origin{Channel: worldChannels[draw(len(worldChannels))], Account: "main", User: user, MessageID: event}
	switch draw(3) {
	case 0:
		o.Recipient = user
	case 1:
		o.Recipient, o.Group = "room", true
	default:
		o.Recipient, o.Thread, o.Group = "room", fmt.Sprint("t", draw(2)), true
	}
	h.asked[event] = o
	var text string
	switch k := draw(6); k {
	case 0:
		text = "hello"
	case 1:
		text = "cancel call_0"
	default:
		for i := range 1 + k%2 {
			text += fmt.Sprintf("<%s.%d%s> ", event, i, []string{"", "", "!2"}[draw(3)])
		}
	}
	h.texts = append(h.texts, text)
	h.receive(event, o, text)
}

func (h *harbor) receive(event string, o topics.Origin, text string) {
	require.NoError(h.t, h.bridge.Receive(h.t.Context(), adapter.Inbound{Event: event, Origin: o, Text: text, Mentioned: true}))
}

// said returns the text of an event.
func (h *harbor) said(event string) string {
	var n int
	_, err := fmt.Sscanf(event, "e%d", &n)
	require.NoError(h.t, err)
	return h.texts[n]
}

// judge checks what was posted.
func (h *harbor) judge() {
	byDelivery := map[string]wallPost{}
	for _, p := range h.posts {
		if before, ok := byDelivery[p.delivery]; ok {
			require.Equal(h.t, before, p, "a repeated post is the same")
		}
		byDelivery[p.delivery] = p
	}
	announced := map[string][]wallPost{} // by session and callback ID
	for _, p := range byDelivery {
		if _, rest, ok := strings.Cut(p.text, "Result of the delegation "); ok {
			id, _, _ := strings.Cut(rest, " ")
			announced[p.to.Session("front")+" "+id] = append(announced[p.to.Session("front")+" "+id], p)
		}
		for event, o := range h.asked {
			if strings.Contains(p.text, "<"+event+".") {
				require.Truef(h.t, o.SamePlace(p.to), "%q is for %v, and was posted at %v", p.text, o, p.to)
				require.Equal(h.t, o, p.to, "it answers the message that asked for it")
			}
		}
	}
	opened, ends := map[string]bool{}, map[string]topics.Delegation{}
	for _, lane := range h.order {
		for _, group := range []goka.Group{h.front.DelegationsGroup(), h.back.DelegationsGroup(), h.front.DeliveryGroup()} {
			require.NotEqual(h.t, string(group)+"-dlq", lane.topic)
		}
		if lane.topic != h.front.DelegationStatus.Name() {
			continue
		}
		for _, e := range h.lanes[lane] {
			d := decode(h, h.front.DelegationStatus, e)
			id := d.SessionID + " " + d.CallbackID
			if d.Status == topics.DelegationOpen {
				opened[id] = true
				continue
			}
			if before, ok := ends[id]; ok {
				require.Equal(h.t, before, d, "one end")
			}
			ends[id] = d
		}
	}
	require.Len(h.t, ends, len(opened))
	tasks := 0
	for event := range h.asked {
		tasks += strings.Count(h.said(event), "<")
	}
	require.Len(h.t, ends, tasks, "every task was handed off once")
	require.Len(h.t, announced, len(ends))
	for id, d := range ends {
		require.Lenf(h.t, announced[id], 1, "announcements of %s", id)
		require.Contains(h.t, announced[id][0].text, "("+string(d.Status)+")")
		require.Contains(h.t, announced[id][0].text, d.Result+d.Error)
	}
}
