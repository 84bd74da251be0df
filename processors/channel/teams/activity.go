package teams

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/internal/platform"
	"github.com/turntable-streams/turntable/topics"
)

// activity is an activity as Teams sends it,
// https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference#activity-object.
type activity struct {
	Type         string         `json:"type"`
	ID           string         `json:"id"`
	Timestamp    string         `json:"timestamp"`
	ServiceURL   string         `json:"serviceUrl"`
	ChannelID    string         `json:"channelId"`
	From         party          `json:"from"`
	Recipient    party          `json:"recipient"`
	Conversation conversation   `json:"conversation"`
	Text         string         `json:"text"`
	Entities     jsontext.Value `json:"entities"`
	ChannelData  jsontext.Value `json:"channelData"`
	Value        jsontext.Value `json:"value"`
}

type party struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	AADObjectID string `json:"aadObjectId"`
	Role        string `json:"role"`
}

type conversation struct {
	ID               string `json:"id"`
	ConversationType string `json:"conversationType"`
	IsGroup          bool   `json:"isGroup"`
	TenantID         string `json:"tenantId"`
}

// reply is what the adapter keeps in the origin to answer. A channel is a conversation of a team, whose ID has the thread.
type reply struct {
	ServiceURL string `json:"service_url"`
	Channel    bool   `json:"channel,omitzero"`
}

// threadMark divides the ID of a channel's conversation from that of the first message of the thread.
const threadMark = ";messageid="

// inbound is the message or the decision of an activity; false if it is none that a person caused.
func (m *activity) inbound(account string) (adapter.Inbound, bool) {
	switch {
	case m.Type != "message" && m.Type != "invoke":
		return adapter.Inbound{}, false
	case m.ID == "" || m.Conversation.ID == "" || m.From.ID == "":
		return adapter.Inbound{}, false
	case m.From.ID == m.Recipient.ID, m.From.Role == "bot", strings.HasPrefix(m.From.ID, "28:"): // 28: are the IDs of bots
		return adapter.Inbound{}, false
	}
	room, thread, _ := strings.Cut(m.Conversation.ID, threadMark)
	to, err := json.Marshal(reply{ServiceURL: m.ServiceURL, Channel: m.Conversation.ConversationType == "channel" || thread != ""})
	if err != nil {
		return adapter.Inbound{}, false
	}
	personal := m.Conversation.ConversationType == "personal" || m.Conversation.ConversationType == "" && !m.Conversation.IsGroup
	at, _ := time.Parse(time.RFC3339Nano, m.Timestamp) // zero if it says none
	in := adapter.Inbound{
		Event: m.Conversation.ID + "/" + m.ID,
		Origin: topics.Origin{
			Channel: Channel, Account: account, Recipient: room, Thread: thread, MessageID: m.ID, User: cmp.Or(m.From.AADObjectID, m.From.ID),
			UserName: platform.DisplayName(m.From.Name), Group: !personal, Adapter: topics.Raw(to),
		},
		Guild: m.team(),
		At:    at,
	}
	if in.Decision = m.decision(); in.Decision != nil {
		in.Mentioned = true
		return in, true
	}
	if m.Type == "invoke" {
		return adapter.Inbound{}, false
	}
	in.Text, in.Mentioned = m.words()
	return in, true
}

// team is the team of a channel, empty elsewhere.
func (m *activity) team() string {
	var data struct {
		Team struct {
			ID string `json:"id"`
		} `json:"team"`
	}
	if m.ChannelData == nil || json.Unmarshal(m.ChannelData, &data) != nil {
		return ""
	}
	return data.Team.ID
}

// tenant is the tenant of an activity.
func (m *activity) tenant() string {
	var data struct {
		Tenant struct {
			ID string `json:"id"`
		} `json:"tenant"`
	}
	if m.Conversation.TenantID == "" && m.ChannelData != nil && json.Unmarshal(m.ChannelData, &data) == nil {
		return data.Tenant.ID
	}
	return m.Conversation.TenantID
}

// choice is the data of a button of a request for approval.
type choice struct {
	GateID  string `json:"gate_id"`
	Approve *bool  `json:"approve"`
}

// decision returns the decision of a pressed button: the data of Action.Submit are the value of a message, and those of
// Action.Execute are in the action of the value of an invoke.
func (m *activity) decision() *adapter.Decision {
	var value struct {
		Choice *choice `json:"turntable_gate"`
		Action struct {
			Data struct {
				Choice *choice `json:"turntable_gate"`
			} `json:"data"`
		} `json:"action"`
	}
	if m.Value == nil || json.Unmarshal(m.Value, &value) != nil {
		return nil
	}
	c := value.Choice
	if c == nil {
		c = value.Action.Data.Choice
	}
	if c == nil || c.GateID == "" || len(c.GateID) > maxGate || c.Approve == nil {
		return nil
	}
	return &adapter.Decision{GateID: c.GateID, Approve: *c.Approve}
}

var mark = regexp.MustCompile(`</?at(?:\s[^<>]*)?>`)

// words returns the text without mentions of the bot, and whether there is one. Mentions of others become their names.
func (m *activity) words() (words string, mentioned bool) {
	var entities []struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Mentioned struct {
			ID string `json:"id"`
		} `json:"mentioned"`
	}
	words = m.Text
	if m.Entities != nil && json.Unmarshal(m.Entities, &entities) == nil {
		for _, e := range entities {
			if e.Type != "mention" || e.Mentioned.ID == "" || e.Mentioned.ID != m.Recipient.ID {
				continue
			}
			mentioned = true
			if e.Text != "" {
				words = strings.ReplaceAll(words, e.Text, " ")
			}
		}
	}
	words = strings.ReplaceAll(mark.ReplaceAllString(words, ""), "&nbsp;", " ")
	return strings.TrimSpace(words), mentioned
}
