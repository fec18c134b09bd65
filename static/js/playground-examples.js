// The call that the playground makes, as a program would make it. What a person typed is quoted, never run.

const KEY = "YOUR_KEY";

// In a shell, nothing is special between single quotes but the quote itself.
const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// JSON's strings and numbers are literals of Python too.
const literal = (value) => JSON.stringify(value);

export function curl(gateway, body) {
  const asked = { ...body, stream: true, stream_options: { include_usage: true } };
  return [
    `curl -N ${gateway}/v1/chat/completions \\`,
    `  -H "Authorization: Bearer ${KEY}" \\`,
    '  -H "Content-Type: application/json" \\',
    `  -d ${shell(JSON.stringify(asked, null, 2))}`,
  ].join("\n");
}

export function python(gateway, { model, messages, ...parameters }) {
  const given = Object.entries(parameters).map(([name, value]) => `    ${name}=${literal(value)},`);
  return [
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${literal(`${gateway}/v1`)}, api_key="${KEY}")`,
    "stream = client.chat.completions.create(",
    `    model=${literal(model)},`,
    "    messages=[",
    ...messages.map(({ role, content }) => `        {"role": ${literal(role)}, "content": ${literal(content)}},`),
    "    ],",
    ...given,
    "    stream=True,",
    '    stream_options={"include_usage": True},',
    ")",
    "for chunk in stream:",
    "    if chunk.choices:",
    '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
  ].join("\n");
}
