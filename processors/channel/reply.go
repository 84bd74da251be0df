package channel

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/truncate"
)

// What the bridge answers.
const (
	tooFast    = "You are sending messages too fast. Please wait a minute, then send your message again."
	tooLong    = "Your message is too long. Please send a shorter one."
	stopping   = "If I was working on an answer, I have stopped."
	forgotten  = "This is a new conversation. Tasks that I handed off continue."
	restUnread = "I did not read the text after /new; please send it again."
	noGates    = "There is nothing to approve or deny here."
	unnamed    = "I cannot tell who you are, so you cannot decide about requests here."
	unproven   = "Nothing proves that you have written this, so it decides nothing. decide where the request says."
	unknown    = "State: unknown at the moment"
)

const (
	statusTimeout = 5 * time.Second
	maxStatus     = 4 << 10
	maxAgents     = 16 << 10
)

// agentsText lists the agents, one per line.
func agentsText(s *Settings, answers string) string {
	var b strings.Builder
	b.WriteString("Agents:")
	listed := false
	for _, a := range s.Agents {
		b.WriteString("\n- " + a.Name)
		if a.Name == answers {
			b.WriteString(" (answers here)")
			listed = true
		}
		if line := strings.Join(strings.Fields(a.Description), " "); line != "" {
			b.WriteString(": " + line)
		}
	}
	if !listed {
		b.WriteString("\n- " + answers + " (answers here)")
	}
	return truncate.Marked(b.String(), maxAgents)
}

// statusText says what is known without state, and what BridgeConfig.Status adds.
func (b *Bridge) statusText(ctx context.Context, e event) string {
	text := fmt.Sprintf("Agent: %s\nChannel: %s\nSession: %s", e.out.Agent, e.out.Origin.Destination().Service, e.session())
	if b.config.Status == nil {
		return text
	}
	timeout := statusTimeout
	if end, bounded := ctx.Deadline(); bounded { // the reply must be written before the platform gives up
		timeout = min(timeout, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state, err := b.config.Status(ctx, e.out.Agent, e.session())
	if err != nil {
		b.config.Logger.Warn("the status of a session is unknown; the person is told so", zap.String("agent", e.out.Agent),
			zap.String("session", e.session()), zap.Error(err))
		state = unknown
	}
	if state = strings.TrimSpace(state); state != "" {
		text += "\n" + truncate.Marked(state, maxStatus)
	}
	return text
}
