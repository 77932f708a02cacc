"use strict";
(() => {
  const { outline, check, states } = JSON.parse(document.getElementById("data").textContent);
  const GLYPHS = { reached: "●", forced: "◆", pruned: "○", failing: "▲", unknown: "□", different: "✕" };
  const COMPARED = {
    equal: ["reached", "equal"], noise: ["forced", "within the original's noise"], unshown: ["unknown", "not shown"], random: ["unknown", "random"], different: ["different", "differs"],
  };
  const ROW = 30; // pixels, as in the style
  const get = (id) => document.getElementById(id);

  /** An element with properties and children; text stays text, whatever it holds. */
  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key === "class") element.className = value;
      else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== undefined && value !== null) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }
  const short = (index) => outline.names[index][0];
  const full = (index) => outline.names[index][1];
  const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
  const bytes = (count) => {
    for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
      if (count >= size) return `${(count / size).toFixed(1)} ${unit}`;
    }
    return `${count} B`;
  };
  /** A number of JSON, or the text that stands for one that JSON lacks. */
  const number = (value) =>
    typeof value !== "number" ? String(value) :
      value === 0 ? "0" :
      Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7 ? value.toExponential(2).replace(/\.?0+(?=e)/, "") :
      Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));

  /** What is known of all numbers of iterations of a Loop: the worst state, and what is said of each. */
  function ran(loop) {
    if (!loop) return null;
    const roles = ["none", "one", "several"];
    const state = ["different", "unknown", "forced", "reached", "failing"].find((state) => roles.some((role) => loop[role].state === state));
    return { state: state || loop.one.state, text: roles.map((role) => `${role}: ${loop[role].text}`).join("; "), input: loop.several.input ?? loop.one.input };
  }

  // ---- items of the tree: Ifs, Loops, their branches or bodies, and the operators in those

  const items = [];
  function put(item) {
    item.id = items.push(item) - 1;
    return item;
  }
  /** The operators of a branch. Where an If or a Loop stands beside them, they are in a group. */
  const operators = (holds, parent) => holds.map(([op, name, inputs, outputs]) =>
    put({ op, name, inputs, outputs, parent, level: parent ? parent.level + 1 : 1, kids: [] }));
  function held(own) {
    const list = (parent) => operators(own.body.holds, parent);
    if (!own.body.nodes.length || !own.body.holds.length) return list(own);
    const group = put({ group: own.body, parent: own, level: own.level + 1, kids: [] });
    group.kids = list(group);
    return [group];
  }
  function add(indices, parent) {
    return indices.map((index) => {
      const node = outline.nodes[index];
      const item = put({ node, parent, level: parent ? parent.level + 1 : 1, kids: [] });
      item.kids = node.bodies.map((body) => {
        const own = put({ node, body, parent: item, level: item.level + 1, kids: [] });
        own.state = !check ? null : node.op === "If" ? check.ifs[node.site]?.[body.role] : ran(check.loops?.[node.site]);
        own.kids = [...held(own), ...add(body.nodes, own)];
        return own;
      });
      return item;
    });
  }
  const top = outline.top.length ? add(outline.top, null) : operators(outline.holds, null);
  const ifs = outline.nodes.filter((node) => node.op === "If").length;
  const loops = outline.nodes.length - ifs;
  const branches = items.filter((item) => item.state);

  /** What a search looks at, in small letters; made when it is first asked for. */
  function text(item) {
    if (item.text === undefined) {
      const { node, body } = item;
      const parts = item.op ? [item.op, full(item.name), ...item.outputs.map(([name]) => full(name))] : item.group ? [] : body
        ? [body.role, ...body.inputs.map((port) => full(port[0])), ...body.outputs.map((port) => full(port[0])), item.state ? item.state.text : ""]
        : [node.op, full(node.name), node.says, node.layer || "", ...node.outputs.map((port) => full(port[0]))];
      item.text = parts.join("\n").toLowerCase();
    }
    return item.text;
  }

  // ---- the tree

  const unfolded = new Set();
  const few = items.filter((item) => item.node).length <= 320;
  for (const item of items) {
    if (item.kids.some((kid) => kid.node) && (few || (item.level === 1 && top.length <= 3))) unfolded.add(item.id);
  }
  const chosen = new Set(); // states that are shown alone
  let query = "";
  let rows = []; // items that are to be seen, in order
  let matches = [];
  let selected = null;

  const tree = get("tree");
  const space = get("rows");

  function refresh() {
    const filtered = query !== "" || chosen.size > 0;
    const kept = new Set();
    matches = [];
    if (filtered) {
      for (const item of items) {
        const fits = (!query || text(item).includes(query)) && (!chosen.size || (item.state && chosen.has(item.state.state)));
        if (!fits) continue;
        matches.push(item);
        for (let up = item; up && !kept.has(up.id); up = up.parent) kept.add(up.id);
      }
    }
    rows = [];
    const walk = (some) => {
      for (const item of some) {
        if (filtered && !kept.has(item.id)) continue;
        item.row = rows.length;
        rows.push(item);
        const inside = filtered && item.kids.some((kid) => kept.has(kid.id));
        item.open = inside || unfolded.has(item.id);
        if (item.open) walk(item.kids);
      }
    };
    for (const item of items) item.row = -1;
    walk(top);
    space.style.height = `${Math.max(rows.length, 1) * ROW}px`;
    get("found").textContent = filtered ? `${matches.length.toLocaleString("en")} found` : "";
    drawn = "";
    draw();
  }

  let drawn = "";
  function draw() {
    const first = Math.max(0, Math.floor(tree.scrollTop / ROW) - 10);
    const last = Math.min(rows.length, first + Math.ceil(tree.clientHeight / ROW) + 20);
    const wanted = `${first} ${last} ${selected ? selected.id : ""}`;
    if (wanted === drawn) return;
    drawn = wanted;
    const shown = rows.slice(first, last).map((item, offset) => row(item, first + offset));
    space.replaceChildren(...(rows.length ? shown : [make("p", { class: "empty" }, items.length ? "Nothing was found." : "This model has no operators.")]));
    tree.setAttribute("aria-activedescendant", selected ? `item-${selected.id}` : "");
  }

  function marked(shortened, whole) {
    const at = query ? shortened.toLowerCase().indexOf(query) : -1;
    if (at < 0) {
      return query && whole.toLowerCase().includes(query) ? [make("mark", null, shortened)] : [shortened];
    }
    return [shortened.slice(0, at), make("mark", null, shortened.slice(at, at + query.length)), shortened.slice(at + query.length)];
  }

  function glyph(state) {
    return make("span", { class: `state ${state.state}`, title: state.text }, GLYPHS[state.state]);
  }

  function row(item, index) {
    const { node, body } = item;
    const fold = make("span", { class: "fold", "aria-hidden": "true" }, item.kids.length ? (item.open ? "▾" : "▸") : "");
    fold.addEventListener("click", (event) => { event.stopPropagation(); toggle(item); });
    const element = make("div", {
      class: "row", role: "treeitem", id: `item-${item.id}`, "aria-level": item.level,
      "aria-selected": String(item === selected), "aria-expanded": item.kids.length ? String(item.open) : null,
      style: `top:${index * ROW}px;padding-left:${8 + (item.level - 1) * 20}px`,
    }, fold);
    if (item.op) {
      const takes = item.inputs.map((name) => (name === null ? "–" : short(name))).join(", ");
      element.append(
        make("span", { class: "operator" }, ...marked(item.op, item.op)),
        make("span", { class: "name", title: full(item.name) }, ...marked(short(item.name), full(item.name))),
        make("span", { class: "ports" }, `${takes ? `${takes} ` : ""}→ ${item.outputs.map(([name, type]) => `${short(name)} ${type}`).join(", ")}`));
    } else if (item.group) {
      element.append(make("span", { class: "ports" }, plural(item.kids.length, "operator")));
    } else if (body) {
      element.append(make("span", { class: "role" }, body.role));
      if (item.state) element.append(make("span", { class: `state ${item.state.state}`, title: item.state.text }, `${GLYPHS[item.state.state]} ${states[item.state.state]}`));
      const takes = body.inputs.map((port) => short(port[0])).join(", ");
      const gives = body.outputs.map((port) => short(port[0])).join(", ");
      element.append(make("span", { class: "ports" }, ...marked(`${takes ? `${takes} ` : ""}→ ${gives}`, `${takes} ${gives}`)));
    } else {
      element.append(
        make("span", { class: `op ${node.op.toLowerCase()}` }, node.op),
        make("span", { class: "name", title: full(node.name) }, ...marked(short(node.name), full(node.name))),
        make("span", { class: "says", title: node.says }, ...marked(node.says, node.says)),
      );
      const own = item.kids.filter((kid) => kid.state);
      if (own.length) element.append(make("span", { class: "marks" }, ...own.map((kid) => glyph(kid.state))));
    }
    element.addEventListener("click", () => select(item, false));
    element.addEventListener("dblclick", () => toggle(item));
    return element;
  }

  function toggle(item) {
    if (!item.kids.length) return;
    if (unfolded.has(item.id)) unfolded.delete(item.id); else unfolded.add(item.id);
    refresh();
  }

  function select(item, scroll = true) {
    selected = item;
    if (item.row < 0) {
      for (let up = item.parent; up; up = up.parent) unfolded.add(up.id);
      query = ""; get("search").value = ""; chosen.clear(); pressed();
      refresh();
    }
    if (scroll) {
      const at = item.row * ROW;
      if (at < tree.scrollTop) tree.scrollTop = at;
      else if (at + 2 * ROW > tree.scrollTop + tree.clientHeight) tree.scrollTop = at + 2 * ROW - tree.clientHeight;
    }
    draw();
    explain(item);
  }

  tree.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(tree);
  tree.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    const at = selected && selected.row >= 0 ? selected.row : -1;
    const go = (index) => select(rows[Math.min(Math.max(index, 0), rows.length - 1)]);
    const page = Math.max(1, Math.floor(tree.clientHeight / ROW) - 1);
    switch (event.key) {
      case "ArrowDown": go(at + 1); break;
      case "ArrowUp": go(at < 0 ? 0 : at - 1); break;
      case "PageDown": go(at + page); break;
      case "PageUp": go(at - page); break;
      case "Home": go(0); break;
      case "End": go(rows.length - 1); break;
      case "ArrowRight":
        if (!selected) go(0);
        else if (selected.kids.length && !selected.open) toggle(selected);
        else if (selected.open && selected.kids.length) go(at + 1);
        break;
      case "ArrowLeft":
        if (selected && selected.open && selected.kids.length && unfolded.has(selected.id)) toggle(selected);
        else if (selected && selected.parent) select(selected.parent);
        break;
      case "Enter": case " ": if (selected) toggle(selected); break;
      case "*": unfold(true); break;
      default: return;
    }
    event.preventDefault();
  });

  function unfold(all) {
    unfolded.clear();
    if (all) for (const item of items) unfolded.add(item.id);
    refresh();
  }
  get("unfold").addEventListener("click", () => unfold(true));
  get("fold").addEventListener("click", () => unfold(false));

  const search = get("search");
  search.addEventListener("input", () => { query = search.value.trim().toLowerCase(); tree.scrollTop = 0; refresh(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && matches.length) {
      const step = event.shiftKey ? -1 : 1;
      const at = matches.indexOf(selected);
      select(matches[(at < 0 ? (step > 0 ? 0 : matches.length - 1) : at + step + matches.length) % matches.length]);
    } else if (event.key === "Escape") {
      search.value = ""; query = ""; refresh();
    } else if (event.key === "ArrowDown" && rows.length) {
      tree.focus(); select(rows[0]);
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) { event.preventDefault(); search.focus(); }
  });

  function pressed() {
    for (const button of get("states").children) button.setAttribute("aria-pressed", String(chosen.has(button.dataset.state)));
  }
  for (const state of Object.keys(states)) {
    const count = branches.filter((item) => item.state.state === state).length;
    if (!count) continue;
    const button = make("button", { type: "button", class: state, "aria-pressed": "false", "data-state": state },
      make("span", { class: `state ${state}` }, `${GLYPHS[state]} `), `${count.toLocaleString("en")} ${states[state]}`);
    button.addEventListener("click", () => {
      if (chosen.has(state)) chosen.delete(state); else chosen.add(state);
      pressed(); tree.scrollTop = 0; refresh();
    });
    get("states").append(button);
  }

  // ---- what is known of one item

  function port([name, type, words, other, maker], arrow) {
    const [before, after] = (words || "").split("#");
    const target = other === null || other === undefined ? "" : full(other);
    const place = words ? [`${arrow} ${before}`, target && make("code", null, target), after] : [];
    return make("div", null,
      make("dt", null, full(name), " ", make("span", { class: "type" }, type)),
      ...(place.length ? [make("dd", null, ...place)] : []),
      ...(maker ? [make("dd", null, maker)] : []));
  }
  function ports(title, list, arrow) {
    return list.length ? [make("h3", null, title), make("dl", { class: "ports" }, ...list.map((one) => port(one, arrow)))] : [];
  }
  function chips(operators) {
    return make("div", { class: "chips" }, ...Object.entries(operators).map(([op, count]) => make("span", null, `${op} `, make("b", null, String(count)))));
  }
  function counted(some) {
    const counts = {};
    for (const { op } of some) counts[op] = (counts[op] || 0) + 1;
    return counts;
  }
  function sentence(state) {
    const input = state.input === null || !check.inputs[state.input] ? "" :
      make("button", { type: "button", class: "link", onclick: () => show(state.input) }, `show input ${state.input}`);
    return make("p", null, make("span", { class: `state ${state.state}` }, `${GLYPHS[state.state]} `), `${state.text}. `, input);
  }

  function explain(item) {
    const { node, body } = item;
    const path = [];
    for (let up = item.parent; up; up = up.parent) {
      if (up.group) continue;
      const target = up;
      path.unshift(up.body ? up.body.role : make("button", { type: "button", class: "link", onclick: () => select(target), title: full(up.node.name) }, `${up.node.op} ${short(up.node.name)}`));
      if (up.parent) path.unshift(" / ");
    }
    const way = path.length ? make("p", { class: "path" }, ...path) : "";
    const parts = item.op ? [
      make("div", { class: "muted" }, item.op),
      make("div", { class: "title" }, full(item.name)),
      way,
      ...ports("Takes", item.inputs.filter((name) => name !== null).map((name) => [name, ""]), "from"),
      ...ports("Gives", item.outputs, "to"),
    ] : item.group ? [make("div", { class: "title" }, plural(item.kids.length, "operator")), way, chips(counted(item.kids))] : [
      make("div", { class: "muted" }, body ? `${body.role === "body" ? "body" : `${body.role} branch`} of ${node.op}` : node.op),
      make("div", { class: "title" }, full(node.name)),
      node.layer ? make("p", { class: "hint" }, `in the IR: layer ${node.layer}`) : "",
      way,
    ];
    if (item.op || item.group) {
      // All is said of these.
    } else if (body) {
      if (item.state) parts.push(sentence(item.state));
      parts.push(...ports("Takes", body.inputs, "from"), ...ports("Gives", body.outputs, "to"));
      const count = Object.values(body.operators).reduce((sum, one) => sum + one, 0);
      if (count) parts.push(make("h3", null, plural(count, "operator")), chips(body.operators));
    } else {
      parts.push(make("h3", null, node.op === "If" ? "Condition" : "Runs"), make("div", { class: "formula" }, node.says));
      for (const kid of item.kids) {
        if (!kid.state) continue;
        parts.push(make("h3", null, make("button", { type: "button", class: "link", onclick: () => select(kid) }, kid.body.role)), sentence(kid.state));
      }
      parts.push(...ports("Gives", node.outputs.map(([name, type]) => [name, type]), "to"));
      const others = node.outputs.flatMap((output) => output[2] || []);
      if (others.length) parts.push(make("p", { class: "hint" }, "also called ", make("code", null, others.map(full).join(", "))));
    }
    get("details").replaceChildren(...parts.filter((part) => part !== ""));
    get("details").scrollTop = 0;
  }

  // ---- the rest of the page

  /** A table that scrolls by itself, also with the keyboard. */
  function table(title, heads, lines) {
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", null,
      make("thead", null, make("tr", null, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", null, ...lines.map((cells) => make("tr", null, ...cells.map((cell) => (cell instanceof Node && cell.tagName === "TD" ? cell : make("td", null, cell))))))));
  }
  const code = (words) => make("code", null, words);
  const tile = (title, big, ...rest) => make("div", { class: "tile" }, make("h2", null, title), make("div", { class: "big" }, big), ...rest);
  const section = (id, title, ...content) => { get(id).hidden = false; get(id).append(make("h2", null, title), ...content); };

  function head() {
    const count = Object.values(outline.operators).reduce((sum, one) => sum + one, 0);
    const facts = [outline.format, ifs && plural(ifs, "If"), loops && plural(loops, "Loop"), plural(count, "operator"),
      `${bytes(outline.constants[1])} of constants`].filter(Boolean);
    const name = outline.file.split(/[\\/]/).pop();
    get("head").append(make("div", null, make("h1", { title: outline.file }, name), make("p", { class: "muted" }, facts.join(" · "))));
    if (!check) return;
    const words = {
      equal: `OK: the same in all ${check.versions.length} versions`,
      "within noise": "OK within the original's noise",
      different: "NOT OK: results differ",
      incomplete: "Not all versions could be run",
      "nothing compared": "Nothing was compared",
    };
    const good = check.verdict === "equal" || check.verdict === "within noise";
    const kind = good ? "equal" : check.verdict === "different" ? "different" : "incomplete";
    get("head").firstChild.append(make("p", null, check.text));
    get("head").append(make("div", { class: `verdict ${kind}`, style: "flex:none" }, words[check.verdict]));
  }

  function tiles() {
    const area = get("facts");
    if (!check) {
      area.append(
        tile("Inputs", String(outline.inputs.length), ...outline.inputs.slice(0, 4).map(([name, type]) => make("p", null, code(short(name)), " ", make("span", { class: "mono type" }, type)))),
        tile("Outputs", String(outline.outputs.length), ...outline.outputs.slice(0, 4).map(([name, type]) => make("p", null, code(short(name)), " ", make("span", { class: "mono type" }, type)))),
        tile("Ifs and Loops", `${ifs} and ${loops}`, make("p", { class: "muted" }, `nested ${Math.ceil(items.reduce((most, item) => (item.node ? Math.max(most, item.level) : most), 0) / 2)} deep`)),
      );
      return;
    }
    const names = new Set(check.outputs.map((one) => one.output));
    const wrong = new Set(check.outputs.filter((one) => !one.equal).map((one) => one.output));
    const reach = [check.reach.size && `sizes up to ${check.reach.size}`, check.reach.iterations && `up to ${plural(check.reach.iterations, "iteration")}`].filter(Boolean);
    const share = (one) => (typeof one.share === "number" ? one.share : Infinity);
    const bad = (one) => (one.equal ? 0 : 1);
    const noisy = new Set(check.outputs.filter((one) => one.state === "noise").map((one) => one.output));
    const worst = check.outputs.filter((one) => one.state !== "random").reduce((a, b) => (a === null || bad(b) > bad(a) || (bad(b) === bad(a) && share(b) > share(a)) ? b : a), null);
    area.append(tile("Outputs",
      wrong.size ? `${wrong.size} of ${names.size} differ` :
        noisy.size ? `${noisy.size} of ${names.size} within the original's noise` : `${names.size} of ${names.size} equal`,
      !worst ? "" : wrong.size ? make("p", null, code(worst.output), ` in ${worst.version}, with input ${worst.input}: ${worst.text}`) :
        worst.absolute === 0 ? make("p", { class: "muted" }, "no number differs") :
        make("p", { class: "muted" }, `the largest difference is ${number(100 * share(worst))} % of what is allowed: `, code(worst.output), ` in ${worst.version}`),
      make("p", { class: "muted" }, `on ${plural(check.inputs.length, "input")}${reach.map((one) => `, ${one}`).join("")}, rtol ${number(check.rtol)}, atol ${number(check.atol)}`),
      check.versions.some((one) => one.engine.startsWith("OpenVINO")) ?
        make("p", { class: "muted" }, "OpenVINO computed in f32, and its dynamic quantisation of activations was off") : null));
    if (branches.length) {
      const counts = Object.keys(states).map((state) => [state, branches.filter((item) => item.state.state === state).length]).filter(([, count]) => count);
      area.append(tile("Branches", String(branches.length),
        make("div", { class: "bar", "aria-hidden": "true" }, ...counts.map(([state, count]) => make("i", { class: state, style: `flex:${count}` }))),
        make("p", null, ...counts.flatMap(([state, count], index) => [index ? ", " : "", make("span", { class: `state ${state}` }, `${count} ${states[state]}`)]))));
    }
    const refused = Object.values(check.refused).reduce((sum, one) => sum + one, 0);
    area.append(tile("Inputs", String(check.inputs.length),
      make("p", { class: "muted" }, `kept of ${plural(check.tried, "input")} that ${check.tried === 1 ? "was" : "were"} tried`),
      refused ? make("p", { class: "muted" }, `${refused.toLocaleString("en")} of them the model itself does not take`) : null));
    const remarks = [...(check.device ? [["unknown", check.device.text]] : []), ...check.failures.map((words) => ["different", words]), ...[...check.notes, ...check.defaults].map((words) => ["unknown", words])];
    if (remarks.length) area.after(make("ul", { class: "notes" }, ...remarks.map(([kind, words]) => make("li", { class: kind }, words))));
  }

  function first() {
    const found = check && check.first_difference;
    if (!found) return;
    const columns = Object.entries(found.around || {}).map(([label, near]) => make("div", { class: "card" },
      make("h3", { style: "margin-top:0" }, label),
      ...(near.length ? near.map((one) => make("div", { class: `near ${one.place}` },
        make("div", null, make("b", null, one.type), " ", code(one.name)),
        make("div", { class: "muted mono" }, `${one.inputs.filter(Boolean).join(", ")} → ${one.outputs.join(", ")}`),
        Object.keys(one.attributes).length ? make("div", { class: "muted mono" }, Object.entries(one.attributes).map(([key, value]) => `${key} = ${value}`).join(", ")) : "",
      )) : [make("p", { class: "muted" }, "has no value of this name")])));
    const fault = check.fault;
    const who = fault && { engine: fault.engine, conversion: "the conversion", file: fault.file, unknown: "not known" }[fault.who];
    section("first", "The first difference", make("p", null, found.text),
      fault ? make("p", null, "At fault: ", make("b", null, who), `, ${fault.text}`) : "",
      fault && fault.advice ? make("p", null, `Next: ${fault.advice}`) : "",
      make("div", { class: "two" }, ...columns));
  }

  /** The tolerances of an output. */
  function allowed(name) {
    const { rtol, atol } = check.tolerances[name] || check;
    return `rtol ${number(rtol)}, atol ${number(atol)}`;
  }

  function outputs() {
    if (!check || !check.outputs.length) return;
    section("outputs", "Outputs", table("Outputs", ["Version", "Output", "result", "abs", "rel", "ulp", "of what is allowed", "allowed", "with input"], check.outputs.map((one) => [
      one.version, code(one.output),
      make("span", { class: `state ${COMPARED[one.state][0]}`, title: one.text }, COMPARED[one.state][1]),
      ...[number(one.absolute), number(one.relative), number(one.ulp), one.problem || (typeof one.share === "number" ? `${number(100 * one.share)} %` : String(one.share))].map((words) => make("td", { class: "number" }, words)),
      make("td", { class: "mono" }, allowed(one.output)),
      make("td", { class: "number" }, [one.input, one.how].filter((words) => words !== "").join(", ")),
    ])));
  }

  function described(value) {
    if (value === null) return ["absent"];
    if (Array.isArray(value)) return [`a list of ${value.length}`, ...value.slice(0, 2).flatMap((one) => [": ", ...described(one)])];
    const range = "lowest" in value ? `, ${number(value.lowest)} to ${number(value.highest)}` : "";
    const more = value.shape.reduce((a, b) => a * b, 1) > value.first.length ? ", …" : "";
    return [make("span", { class: "muted" }, `${value.type}[${value.shape}]${range}: `), code(value.first.slice(0, 4).map((x) => (typeof x === "number" ? number(x) : JSON.stringify(x))).join(", ") + more)];
  }
  function inputs() {
    if (!check || !check.inputs.length) return;
    const taken = new Map();
    for (const item of branches) if (item.state.input !== null) taken.set(item.state.input, (taken.get(item.state.input) || 0) + 1);
    section("inputs", "Inputs", table("Inputs", ["Number", "Made by", "Values", "First to take"], check.inputs.map((one, index) => [
      make("td", { class: "number", id: `input-${index}` }, String(index)), one.recipe,
      make("div", null, ...Object.entries(one.tensors).map(([name, value]) => make("div", null, code(name), " ", ...described(value)))),
      taken.has(index) ? plural(taken.get(index), "branch").replace("branchs", "branches") : "",
    ])));
    const refused = Object.entries(check.refused);
    if (refused.length) get("inputs").append(make("h3", null, "What the model itself does not take"), table("Refused inputs", ["times", "why"], refused.map(([why, count]) => [make("td", { class: "number" }, String(count)), why])));
    const unmet = (check.situations || []).filter((one) => one.input === null);
    if (unmet.length) get("inputs").append(make("h3", null, "Situations that no input met"), table("Situations not met", ["where", "what"], unmet.map((one) => [one.where, one.text])));
  }
  function show(index) {
    const line = get(`input-${index}`).parentElement;
    for (const other of line.parentElement.children) other.className = "";
    line.className = "chosen";
    line.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  function model() {
    const list = (title, some) => make("div", { class: "card" }, make("h3", { style: "margin-top:0" }, title), make("dl", { class: "ports" }, ...some.map((one) => port(one, ""))));
    section("model", "Model", make("div", { class: "two" }, list("Inputs", outline.inputs), list("Outputs", outline.outputs)),
      make("h3", null, "Operators, those in branches and bodies included"), chips(outline.operators));
  }

  function files() {
    if (!check) return;
    section("files", "Files and engines", table("Files and engines", ["Version", "Engine", "File", "Size", "SHA-256"], check.versions.flatMap((version) =>
      (version.files.length ? version.files : [{ name: "", size: 0, sha256: "" }]).map((file, index) => [
        index ? "" : version.label, index ? "" : version.engine, code(file.name), make("td", { class: "number" }, bytes(file.size)), code(file.sha256),
      ]))));
    document.body.append(make("footer", { class: "hint" }, `made by Bridge ${check.bridge}`));
  }

  head(); tiles(); first(); outputs(); inputs(); model(); files();
  const structure = get("structure");
  if (!outline.nodes.length) {
    structure.querySelector("h2").textContent = "Operators: the model has no If and no Loop";
    tree.setAttribute("aria-label", "Operators");
    for (const id of ["unfold", "fold"]) get(id).hidden = true;
  }
  if (!items.length) for (const part of [structure.querySelector(".toolbar"), get("details"), structure.querySelector(".hint")]) part.hidden = true;
  refresh();
  const worst = branches.find((item) => item.state.state === "different");
  if (worst || top.length) select(worst || top[0]);
})();
