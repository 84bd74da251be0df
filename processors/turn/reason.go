package turn

// Why a record is dead-lettered. The texts are for people and for alerts: they stay as they are.
const (
	reasonTombstone    = "turn: tombstone"
	reasonForeignTool  = "turn: a message of role tool is written by the turn alone"
	reasonSameRequest  = "turn: a message with this request_id was accepted before"
	reasonNoFields     = "turn: response has no known field"
	reasonSameResponse = "turn: response was accepted before"
	reasonNoStep       = "turn: no step of the session waits for the model"
	reasonOtherStep    = "turn: answers a step that is closed"
	reasonNoCall       = "turn: no open call has this tool_use_id"
	reasonCallEnded    = "turn: the call has its result already"
	reasonSameResult   = "turn: result was applied before"
	reasonNoToolUseID  = "turn: result has no tool_use_id, or one that is too long"
	reasonHeldAlready  = "turn: a result of this tool_use_id is held already"
	reasonHeldFull     = "turn: too many results are held"
	reasonNoRoom       = "turn: no room in the session's row"
	reasonUnclaimed    = "turn: the turn ended before a call claimed the result"
	reasonTooManyRoute = "turn: too many open routes"
	reasonRouteSize    = "turn: route is too large"
	reasonNoRequest    = "turn: nothing to cancel"
	reasonRowSize      = "turn: the session's row is over its limit"
	reasonAction       = "turn: action is neither cancel nor purge"
)
