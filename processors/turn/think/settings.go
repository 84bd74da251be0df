package think

import "time"

// Settings configure a model adapter, such as those in the packages below this one. Zero fields have the defaults that are
// named here. A call of the model is one request: the worker retries (Config.Retry), and the SDK's own retries are off.
type Settings struct {
	// Key is the provider's API key, a secret. Required.
	Key string
	// Model is the provider's name of the model. Required.
	Model string
	// BaseURL is the address of the API (default: the provider's, which an environment variable of its SDK can set).
	BaseURL string
	// System is the system prompt (default none). Step.Memoir and Step.EphemeralPrompt are added to it.
	System string
	// Tools are the tools that the model may call (default none). Their order and their bytes are part of the prompt that
	// the provider caches.
	Tools []Tool
	// MaxTokens is the largest number of output tokens of a step (default: 4096 for Anthropic, otherwise the provider's).
	MaxTokens int64
	// Prices are the token prices (default: the adapter's Prices). A model without a price has replies without a cost.
	Prices Prices
	// Silence is how long the provider may send nothing while it works on a request (default 5 minutes). Then the step
	// fails with ErrTimeout. The step's deadline applies as well.
	Silence time.Duration
}
