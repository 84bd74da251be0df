package slack

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// envelope is a request of the Events API, https://docs.slack.dev/apis/events-api#events-JSON.
type envelope struct {
	Type           string `json:"type"`
	Challenge      string `json:"challenge"`
	TeamID         string `json:"team_id"`
	APIAppID       string `json:"api_app_id"`
	EventID        string `json:"event_id"`
	Authorizations []struct {
		UserID string `json:"user_id"`
		IsBot  bool   `json:"is_bot"`
	} `json:"authorizations"`
	// Event is decoded when its type is known: other events have other types of members.
	Event jsontext.Value `json:"event"`
}

// message is an event message or app_mention, https://docs.slack.dev/reference/events/message.
type message struct {
	Type         string `json:"type"`
	Subtype      string `json:"subtype"`
	Channel      string `json:"channel"`
	ChannelType  string `json:"channel_type"`
	User         string `json:"user"`
	BotID        string `json:"bot_id"`
	Text         string `json:"text"`
	TS           string `json:"ts"`
	ThreadTS     string `json:"thread_ts"`
	ParentUserID string `json:"parent_user_id"`
	Hidden       bool   `json:"hidden"`
}

// written are the subtypes of messages that a person wrote. All others are changes, notices and messages of bots.
var written = map[string]bool{"": true, "file_share": true, "thread_broadcast": true, "me_message": true}

// inbound is the message of an event; false if it is none that a person wrote to this account.
func (e *envelope) inbound(c Config) (adapter.Inbound, bool) {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(e.Event, &kind); err != nil || kind.Type != "message" && kind.Type != "app_mention" {
		return adapter.Inbound{}, false
	}
	var m message
	if err := json.Unmarshal(e.Event, &m); err != nil {
		return adapter.Inbound{}, false
	}
	bot := e.bot(c)
	switch {
	case c.AppID != "" && e.APIAppID != c.AppID, c.TeamID != "" && e.TeamID != c.TeamID:
		return adapter.Inbound{}, false
	case e.EventID == "" || m.Channel == "" || m.TS == "" || m.User == "":
		return adapter.Inbound{}, false
	case !written[m.Subtype], m.Hidden:
		return adapter.Inbound{}, false
	case m.BotID != "", m.User == bot, m.User == "USLACKBOT":
		return adapter.Inbound{}, false
	}
	direct := m.ChannelType == "im" || m.ChannelType == "" && strings.HasPrefix(m.Channel, "D")
	words, mentioned := plain(m.Text, bot)
	in := adapter.Inbound{
		// A text that mentions the bot arrives twice, as a message and as an app_mention, with two event IDs and one timestamp. The
		// timestamp of a message is its ID in the channel.
		Event: "message/" + m.Channel + "/" + m.TS,
		Origin: topics.Origin{
			Channel: Channel, Account: c.Account, Recipient: m.Channel, Thread: threadOf(m.ThreadTS, m.TS), MessageID: m.TS,
			User: m.User, Group: !direct,
		},
		Text:      words,
		Mentioned: mentioned || m.Type == "app_mention" || bot != "" && m.ParentUserID == bot,
		Guild:     e.TeamID,
		At:        timeOf(m.TS),
	}
	return in, true
}

// bot is the user ID of the account's bot, empty if it is not known.
func (e *envelope) bot(c Config) string {
	if c.BotUser != "" {
		return c.BotUser
	}
	for _, a := range e.Authorizations {
		if a.IsBot {
			return a.UserID
		}
	}
	return ""
}

// threadOf is the thread of a message: the first message of a thread is not in it.
func threadOf(thread, ts string) string {
	if thread == ts {
		return ""
	}
	return thread
}

// timeOf is the time of a timestamp such as 1503435956.000247, zero if it is none.
func timeOf(ts string) time.Time {
	whole, _, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// interaction is a payload of block_actions, https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.
type interaction struct {
	Type     string `json:"type"`
	APIAppID string `json:"api_app_id"`
	Team     struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message struct {
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		ActionID string `json:"action_id"`
		ActionTS string `json:"action_ts"`
		Value    string `json:"value"`
	} `json:"actions"`
}

// inbound is the decision of a pressed button; false if no button of a request for approval of this account was pressed.
func (i *interaction) inbound(c Config) (adapter.Inbound, bool) {
	switch {
	case c.AppID != "" && i.APIAppID != c.AppID, c.TeamID != "" && i.Team.ID != c.TeamID:
		return adapter.Inbound{}, false
	case i.Type != "block_actions" || len(i.Actions) != 1 || i.User.ID == "" || i.Channel.ID == "" || i.Message.TS == "":
		return adapter.Inbound{}, false
	}
	action := i.Actions[0]
	if action.Value == "" || action.ActionTS == "" || action.ActionID != actionApprove && action.ActionID != actionDeny {
		return adapter.Inbound{}, false
	}
	return adapter.Inbound{
		Event: strings.Join([]string{"action", i.Channel.ID, i.Message.TS, i.User.ID, action.ActionTS, action.ActionID}, "/"),
		Origin: topics.Origin{
			Channel: Channel, Account: c.Account, Recipient: i.Channel.ID, Thread: threadOf(i.Message.ThreadTS, i.Message.TS),
			MessageID: i.Message.TS, User: i.User.ID, UserName: platform.DisplayName(i.User.Username),
			Group: !strings.HasPrefix(i.Channel.ID, "D"),
		},
		Mentioned: true,
		Guild:     i.Team.ID,
		Decision:  &adapter.Decision{GateID: action.Value, Approve: action.ActionID == actionApprove},
		At:        timeOf(action.ActionTS),
	}, true
}
