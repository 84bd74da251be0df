package talk

// The limits of a row. A name or a role is limited by package command.
const (
	groupLimit   = 32 // the oldest archived group makes room
	memberLimit  = 64 // of a group
	roleLimit    = 16 // of a group
	roleBytes    = 64
	messageLimit = 20       // of a group
	contentBytes = 4 << 10  // of a kept message
	keptBytes    = 96 << 10 // of the kept messages of all groups; the oldest makes room
	emojiLimit   = 8        // of a message
	emojiBytes   = 32
	reportLimit  = 50 // mentions of a message that are reported
	previewRunes = 100
	welcomeBytes = 500     // of each message that a new member gets
	human        = "human" // a person as the member of a group
	user         = "user"  // a person as the sender of a message
	system       = "system"
	everyone     = "*"
)
