package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// hostAgain plays that the host was killed and starts anew, and that the agent continues its session.
func (w *world) hostAgain() *world {
	w.tb.Helper()
	w.epoch++
	w.host(topics.CrewHostStarted{Host: hostID, Epoch: w.epoch})
	return w.ready("s1", true)
}

func TestPromptThatALostHostWasToldIsSentAgain(t *testing.T) {
	w := newWorld(t).start()
	w.crew(topics.CrewPrompt{Text: "one", FromID: "user"}) // a prompt for a host that is gone
	require.Equal(t, []string{"one"}, prompts(w.last))
	w.crew(topics.CrewPrompt{Text: "two", FromID: "user"})
	require.Empty(t, prompts(w.last))
	w.hostAgain()
	require.Equal(t, []string{"one\ntwo"}, prompts(w.last))
	w.endTurn()
	require.Empty(t, prompts(w.last))
}

func TestPromptThatTheAgentHasBegunIsNotSentAgain(t *testing.T) {
	w := newWorld(t).start()
	w.crew(topics.CrewPrompt{Text: "one", FromID: "user"})
	w.say("I begin.")
	require.Nil(t, w.state().Turn.Sent, "the row does not keep what the agent has got")
	w.hostAgain()
	require.Empty(t, prompts(w.last))
}

func TestFirstPromptThatALostHostWasToldIsSentAgain(t *testing.T) {
	w := newWorld(t).spawn().ready("s1", false)
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	w.hostAgain()
	require.Equal(t, []string{"You are a developer."}, prompts(w.last))
	w.endTurn().hostAgain()
	require.Empty(t, prompts(w.last))
}

func TestCancelledPromptIsNotSentAgain(t *testing.T) {
	w := newWorld(t).start()
	w.crew(topics.CrewPrompt{Text: "one", FromID: "user"})
	w.crew(topics.CrewInterrupt{Text: "stop", FromID: "lead"})
	w.hostAgain()
	require.Equal(t, []string{"stop"}, prompts(w.last))
}
