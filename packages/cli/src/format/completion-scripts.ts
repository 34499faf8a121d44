/** Completion scripts: commands, then the options of the command, then the choices of an option. */
import type { CommandSpec } from "../command.ts";

const SCRIPTS: Readonly<Record<string, (commands: readonly CommandSpec[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

export function completionScript(shell: string | undefined, commands: readonly CommandSpec[]): string {
  return (SCRIPTS[shell ?? ""] ?? bashScript)(commands);
}

function optionNames({ options }: CommandSpec): readonly string[] {
  return Object.keys(options).map((name) => `--${name}`);
}

/** After `--` the command line is that of another program: the shell's own completion takes over. */
function bashScript(commands: readonly CommandSpec[]): string {
  const cases = commands.map(
    (command) =>
      `    ${command.name}) words="${[...optionNames(command), ...argumentWords(command)].join(" ")}" ;;`,
  );
  const choices = choiceOptions(commands).map(
    ([name, values]) =>
      `    --${name}) COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$current")); return ;;`,
  );
  return `# bash completion for solehold
_solehold() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [ "$word" = "--" ]; then COMPREPLY=($(compgen -c -f -- "$current")); return; fi
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")}" -- "$current"))
    return
  fi
  case "$previous" in
${choices.join("\n")}
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _solehold solehold
`;
}

function zshScript(commands: readonly CommandSpec[]): string {
  const described = commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`);
  const cases = commands.map((command) => {
    const specs = Object.entries(command.options).map(([name, { type, help, choices }]) => {
      const value =
        type === "flag" ? "" : `:${name}:${choices === undefined ? "" : `(${choices.join(" ")})`}`;
      return quoted(`--${name}[${help.replace(/[[\]:]/g, "\\$&")}]${value}`);
    });
    const words = argumentWords(command);
    const argument = words.length === 0 ? [] : [quoted(`1:argument:(${words.join(" ")})`)];
    const rest = (command.trailing ?? "none") === "none" ? [] : [quoted("*::command:_normal")];
    return `    ${command.name}) _arguments ${[...specs, ...argument, ...rest].join(" ")} ;;`;
  });
  return `#compdef solehold
_solehold() {
  local -a commands
  commands=(
${described.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="\${words[2]}"
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases.join("\n")}
  esac
}
compdef _solehold solehold
`;
}

function fishScript(commands: readonly CommandSpec[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  const lines = commands.flatMap((command) => {
    const when = quoted(`__fish_seen_subcommand_from ${command.name}`);
    const options = Object.entries(command.options).map(([name, { type, help, choices }]) => {
      const value =
        type === "flag" ? "" : choices === undefined ? " -r" : ` -x -a ${quoted(choices.join(" "))}`;
      return `complete -c solehold -n ${when} -l ${name}${value} -d ${quoted(help)}`;
    });
    const words = argumentWords(command);
    const argument =
      words.length === 0 ? [] : [`complete -c solehold -n ${when} -a ${quoted(words.join(" "))}`];
    return [
      `complete -c solehold -n ${quoted(`not __fish_seen_subcommand_from ${names}`)} -f -a ${command.name} -d ${quoted(command.summary)}`,
      ...options,
      ...argument,
    ];
  });
  return `# fish completion for solehold\n${lines.join("\n")}\n`;
}

/** Arguments that come from a known set. */
function argumentWords({ positionals }: CommandSpec): readonly string[] {
  return positionals?.[0]?.choices ?? [];
}

/** Each option that has choices, with them. */
function choiceOptions(commands: readonly CommandSpec[]): readonly (readonly [string, readonly string[]])[] {
  const found = new Map<string, readonly string[]>();
  for (const [name, { choices }] of commands.flatMap(({ options }) => Object.entries(options)))
    if (choices !== undefined) found.set(name, choices);
  return [...found];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
