package config

import "encoding/json"

// Schema returns the JSON schema (draft 2020-12) of postburner.yml, for editors.
func Schema() ([]byte, error) {
	worker := func(string) []field { return workerFields(&Worker{}) }
	environment := object(environmentFields(&Config{Handlers: map[string]Handler{}}, worker))
	return json.MarshalIndent(map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "postburner.yml",
		"description":          "Postburner's configuration: environment, settings, workers.",
		"type":                 "object",
		"additionalProperties": environment,
	}, "", "  ")
}

func object(fields []field) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		var schema map[string]any
		switch {
		case f.fields != nil:
			schema = object(f.fields)
		case f.each != nil:
			schema = map[string]any{"type": []string{"object", "null"}, "additionalProperties": object(f.each(""))}
		default:
			// ${…} stands for any value.
			schema = map[string]any{"anyOf": []any{f.schema, map[string]any{"type": "string", "pattern": `\$\{`}}}
		}
		schema["description"] = f.doc
		properties[f.name] = schema
		if f.required {
			required = append(required, f.name)
		}
	}
	return map[string]any{"type": []string{"object", "null"}, "properties": properties, "required": required, "additionalProperties": false}
}
