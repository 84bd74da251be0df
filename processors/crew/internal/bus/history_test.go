package bus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/bus"
	"github.com/turntable-streams/turntable/processors/crew/view"
)

// ids returns the IDs of messages.
func ids(messages []view.BusMessage) []string {
	list := []string{}
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}

func TestB02_TheHistoryIsInOrderAndAnAgentSeesItsOwnAndThoseToAll(t *testing.T) {
	h := &bus.History{}
	require.Empty(t, h.Messages(""))
	for _, m := range []view.BusMessage{
		{ID: "1", From: "a", To: "b"}, {ID: "2", From: "b", To: "c"}, {ID: "3", From: "c", To: "*"}, {ID: "4", From: "c", To: "a"},
	} {
		h.Add(m)
	}
	require.Equal(t, []string{"1", "2", "3", "4"}, ids(h.Messages("")))
	require.Equal(t, []string{"1", "3", "4"}, ids(h.Messages("a")))
	require.Equal(t, []string{"1", "2", "3"}, ids(h.Messages("b")))
	h.Messages("")[0].ID = "changed"
	require.Equal(t, "1", h.Messages("")[0].ID, "the result is a copy")
}

func TestB03_AMessageToAllIsInTheHistoryOfEveryID(t *testing.T) {
	h := &bus.History{}
	h.Add(view.BusMessage{ID: "1", From: "a", To: "*"})
	h.Add(view.BusMessage{ID: "2", From: "a", To: "b"})
	require.Equal(t, []string{"1"}, ids(h.Messages("an agent that never was")))
	require.Equal(t, []string{"1", "2"}, ids(h.Messages("b")))
}

func TestB04_TheNewest5000MessagesAreKept(t *testing.T) {
	// FlightDeck trims to 5000 only above 10,000. Here there are never more than 5000.
	h := &bus.History{}
	for i := range 10_001 {
		h.Add(view.BusMessage{ID: fmt.Sprint(i), From: "a", To: "b"})
		require.LessOrEqual(t, h.Len(), 5000)
	}
	kept := ids(h.Messages(""))
	require.Len(t, kept, 5000)
	require.Equal(t, "5001", kept[0])
	require.Equal(t, "10000", kept[4999])
}

func TestB05_TheTypesOfMessagesAreKept(t *testing.T) {
	h := &bus.History{}
	types := []string{"request", "response", "broadcast", "spawn_request"}
	for _, kind := range types {
		h.Add(view.BusMessage{From: "a", To: "b", Type: kind})
	}
	for i, m := range h.Messages("b") {
		require.Equal(t, types[i], m.Type)
	}
	require.Len(t, h.Messages("b"), 4)
}

func TestLongMessagesMakeRoomForNewerOnes(t *testing.T) {
	h := &bus.History{}
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		h.Add(view.BusMessage{ID: fmt.Sprint(i), To: "*", Content: long})
	}
	require.Equal(t, 32, h.Len())
	require.Equal(t, "99", h.Messages("")[31].ID)
	h.Add(view.BusMessage{ID: "huge", To: "*", Content: strings.Repeat(long, 40)})
	require.Equal(t, []string{"huge"}, ids(h.Messages("")))
}
