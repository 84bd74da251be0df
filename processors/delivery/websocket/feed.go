package websocket

import "github.com/turntable-streams/turntable/topics"

// A feed is a topic that clients see, by its place in feedsOf: a contract, since event ids name feeds so.
type feed int

// The feeds that have rules of their own.
const (
	feedSessionContext feed = iota
	feedMessageInput
	feedEnriched
	feedThink
	feedToolUse
	feedToolUseDLQ
	feedToolResult
	feedAllComplete
	feedLatency
	feedOutput
	feedCount
)

// feedsOf are the names of the feeds, in the order in which a turn passes them.
func feedsOf(c topics.Catalog) [feedCount]string {
	return [feedCount]string{
		feedSessionContext: c.SessionContext.Name(), feedMessageInput: c.MessageInput.Name(),
		feedEnriched: c.EnrichedMessageInput.Name(), feedThink: c.ThinkRequestResponse.Name(),
		feedToolUse: c.ToolUse.Name(), feedToolUseDLQ: c.ToolUseDLQ.Name(), feedToolResult: c.ToolUseResult.Name(),
		feedAllComplete: c.ToolUseAllComplete.Name(), feedLatency: c.ToolUseLatency.Name(),
		feedOutput: c.MessageOutput.Name(),
	}
}
