package crewhttp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/internal/view"
)

// ids returns the IDs of messages.
func ids(messages []view.BusMessage) []string {
	list := []string{}
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}

// of returns all messages of an agent.
func of(h *newestMessages, agentID string) []view.BusMessage {
	return h.query(agentID, busLimit, func(string, string) bool { return true })
}

func TestB02_TheHistoryIsInOrderAndAnAgentSeesItsOwnAndThoseToAll(t *testing.T) {
	h := &newestMessages{}
	require.Empty(t, of(h, ""))
	for _, m := range []view.BusMessage{
		{ID: "1", From: "a", To: "b"}, {ID: "2", From: "b", To: "c"}, {ID: "3", From: "c", To: "*"}, {ID: "4", From: "c", To: "a"},
	} {
		h.add("", m)
	}
	require.Equal(t, []string{"1", "2", "3", "4"}, ids(of(h, "")))
	require.Equal(t, []string{"1", "3", "4"}, ids(of(h, "a")))
	require.Equal(t, []string{"1", "2", "3"}, ids(of(h, "b")))
	of(h, "")[0].ID = "changed"
	require.Equal(t, "1", of(h, "")[0].ID, "the result is a copy")
}

func TestB03_AMessageToAllIsInTheHistoryOfEveryID(t *testing.T) {
	h := &newestMessages{}
	h.add("", view.BusMessage{ID: "1", From: "a", To: "*"})
	h.add("", view.BusMessage{ID: "2", From: "a", To: "b"})
	require.Equal(t, []string{"1"}, ids(of(h, "an agent that never was")))
	require.Equal(t, []string{"1", "2"}, ids(of(h, "b")))
}

func TestB04_TheNewest5000MessagesAreKept(t *testing.T) {
	// FlightDeck trims to 5000 only above 10,000. Here there are never more than 5000.
	h := &newestMessages{}
	for i := range 10_001 {
		h.add("", view.BusMessage{ID: fmt.Sprint(i), From: "a", To: "b"})
		require.LessOrEqual(t, len(h.messages), 5000)
	}
	kept := ids(of(h, ""))
	require.Len(t, kept, 5000)
	require.Equal(t, "5001", kept[0])
	require.Equal(t, "10000", kept[4999])
}

func TestB05_TheTypesOfMessagesAreKept(t *testing.T) {
	h := &newestMessages{}
	types := []string{"request", "response", "broadcast", "spawn_request"}
	for _, kind := range types {
		h.add("", view.BusMessage{From: "a", To: "b", Type: kind})
	}
	for i, m := range of(h, "b") {
		require.Equal(t, types[i], m.Type)
	}
	require.Len(t, of(h, "b"), 4)
}

func TestLongMessagesMakeRoomForNewerOnes(t *testing.T) {
	h := &newestMessages{}
	long := strings.Repeat("x", 1<<20)
	for i := range 100 {
		h.add("", view.BusMessage{ID: fmt.Sprint(i), To: "*", Content: long})
	}
	require.Equal(t, 32, len(h.messages))
	require.Equal(t, "99", of(h, "")[31].ID)
	h.add("", view.BusMessage{ID: "huge", To: "*", Content: strings.Repeat(long, 40)})
	require.Equal(t, []string{"huge"}, ids(of(h, "")))
}
