package model

// Provided is a [Model] that names its provider: anthropic, openai (also of
// compatible servers), scripted.
type Provided interface{ Provider() string }

// ProviderOf returns a model's provider, or "" if it is not [Provided].
func ProviderOf(m Model) string {
	if p, ok := m.(Provided); ok {
		return p.Provider()
	}
	return ""
}
