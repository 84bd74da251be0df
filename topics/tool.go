package topics

import "fmt"

var (
	toolUseWire    = wire[ToolUseItem]{depth: MaxValueDepth, read: readToolUse, write: writeToolUse}
	toolResultWire = wire[ToolUseResult]{depth: MaxValueDepth, read: readToolResult, write: writeToolResult}
)

func readToolUse(c *cursor, t *ToolUseItem) error {
	return c.record(func(name []byte) (err error) {
		switch n := string(name); n {
		case "origin":
			t.Origin, err = c.document()
		case "delegation_depth":
			t.Depth, err = c.integer(32)
		default:
			err = t.member(c, n)
		}
		return err
	})
}

// readCalledTool reads an item of a think-response, which may have camelCase names. It takes no origin from a model.
func readCalledTool(c *cursor, t *ToolUseItem) error {
	return c.object(func(name []byte) error {
		switch n := string(name); n {
		case "toolUseId":
			return t.member(c, "tool_use_id")
		case "toolId":
			return t.member(c, "tool_id")
		case "sessionId":
			return t.member(c, "session_id")
		case "totalTools":
			return t.member(c, "total_tools")
		case "invalid":
			text, err := c.text()
			if text != nil {
				t.Invalid = *text
			}
			return err
		default:
			return t.member(c, n)
		}
	})
}

func (t *ToolUseItem) member(c *cursor, name string) (err error) {
	switch name {
	case "tool_use_id":
		t.ToolUseID, err = c.text()
	case "tool_id":
		t.ToolID, err = c.text()
	case "name":
		t.Name, err = c.text()
	case "input":
		t.Input, err = c.document()
	case "session_id":
		t.SessionID, err = c.text()
	case "total_tools":
		t.TotalTools, err = c.integer(32)
	case "timestamp":
		t.Timestamp, err = c.text()
	default:
		err = c.skip()
	}
	return err
}

func writeToolUse(w *writer, t ToolUseItem) {
	w.grow(len(t.Input) + len(t.Origin))
	w.open()
	w.text("tool_use_id", t.ToolUseID)
	w.text("tool_id", t.ToolID)
	w.text("name", t.Name)
	w.raw("input", t.Input)
	w.text("session_id", t.SessionID)
	w.integer("total_tools", t.TotalTools)
	w.text("timestamp", t.Timestamp)
	w.someRaw("origin", t.Origin)
	if t.Depth != 0 {
		w.integer("delegation_depth", t.Depth)
	}
	if t.Invalid != "" {
		w.text("invalid", &t.Invalid)
	}
	w.close()
}

func readToolResult(c *cursor, t *ToolUseResult) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "session_id":
			t.SessionID, err = c.text()
		case "tool_use_id":
			t.ToolUseID, err = c.text()
		case "tool_id":
			t.ToolID, err = c.text()
		case "name":
			t.Name, err = c.text()
		case "result":
			t.Result, err = c.value()
			t.Result = WrapResult(t.Result)
		case "latency_ms":
			t.LatencyMS, err = c.integer(64)
		case "status":
			t.Status, err = c.text()
		case "total_tools":
			t.TotalTools, err = c.integer(32)
		case "timestamp":
			t.Timestamp, err = c.text()
		default:
			err = c.skip()
		}
		return err
	})
}

// WrapResult returns value in the form that a tool result must have. An object is returned unchanged, null as nil,
// anything else as {"result":value}, because a result that is not an object stops FlightDeck's Java services.
func WrapResult(value Raw) Raw {
	if len(value) == 0 || value[0] == '{' {
		return value
	}
	return Raw(fmt.Appendf(make([]byte, 0, len(value)+len(`{"result":}`)), `{"result":%s}`, value))
}

func writeToolResult(w *writer, t ToolUseResult) {
	w.grow(len(t.Result))
	w.open()
	w.text("session_id", t.SessionID)
	w.text("tool_use_id", t.ToolUseID)
	w.text("tool_id", t.ToolID)
	w.text("name", t.Name)
	w.raw("result", t.Result)
	w.integer("latency_ms", t.LatencyMS)
	w.text("status", t.Status)
	w.integer("total_tools", t.TotalTools)
	w.text("timestamp", t.Timestamp)
	w.close()
}

// EncodeToolResult writes a tool result for use inside another record, such as the metadata of a tool message.
func EncodeToolResult(t ToolUseResult) Raw {
	return encode(t, writeToolResult)
}
