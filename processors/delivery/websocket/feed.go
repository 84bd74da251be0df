package websocket

import "github.com/turntable-streams/turntable/topics"

// feed numbers the topics that clients see. Event IDs contain the numbers, so they must not change.
type feed int

// The feeds, in the order in which a turn writes them.
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

// feedsOf returns the topic of each feed.
func feedsOf(c topics.Catalog) [feedCount]string {
	return [feedCount]string{
		feedSessionContext: c.SessionContext.Name(), feedMessageInput: c.MessageInput.Name(),
		feedEnriched: c.EnrichedMessageInput.Name(), feedThink: c.ThinkRequestResponse.Name(),
		feedToolUse: c.ToolUse.Name(), feedToolUseDLQ: c.ToolUseDLQ.Name(), feedToolResult: c.ToolUseResult.Name(),
		feedAllComplete: c.ToolUseAllComplete.Name(), feedLatency: c.ToolUseLatency.Name(),
		feedOutput: c.MessageOutput.Name(),
	}
}
