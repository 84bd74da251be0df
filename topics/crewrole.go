package topics

// CrewRole is what an agent is for.
type CrewRole struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	SystemPrompt string `json:"systemPrompt"`
	Color        string `json:"color,omitzero"`
	Icon         string `json:"icon,omitzero"`
	BuiltIn      bool   `json:"builtIn"`
	Model        string `json:"model,omitzero"`
	// ReceivesStatusUpdates is kept for clients; every running agent gets a CREW_UPDATE.
	ReceivesStatusUpdates bool `json:"receivesStatusUpdates,omitzero"`
}
